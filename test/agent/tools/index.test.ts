import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import * as v from 'valibot';
import { createBuiltinTools, selectTools, type ToolSettings } from '../../../src/agent/tools/index.ts';
import { Config, toolNames } from '../../../src/config/index.ts';
import { call, temporaryWorkspace } from './run-tool.ts';

function settingsOf(config: Record<string, unknown> = {}, overrides: Partial<ToolSettings> = {}): ToolSettings {
  const { Tools } = v.parse(Config, config);
  return {
    tools: Tools,
    blockedPaths: [],
    passEnvironment: [],
    secrets: [],
    environment: process.env,
    home: '/nonexistent/oratorio-home',
    ...overrides,
  };
}

const Properties = v.object({ properties: v.record(v.string(), v.object({ description: v.optional(v.string()) })) });

const namesOf = (tools: readonly { readonly name: string }[]) => tools.map(({ name }) => name);

t.test('the nine tools of the design in its order, then the plan and the questions', async (t) => {
  t.strictSame(namesOf(createBuiltinTools(settingsOf())), [...toolNames, 'UpdatePlan', 'AskUser']);
});

/** Parameters that need no words; each word is part of every request. */
const plain: ReadonlySet<string> = new Set([
  ...[
    'path',
    'limit',
    'content',
    'newText',
    'edits',
    'ignoreCase',
    'pattern',
    'command',
    'url',
    'extractMode',
    'query',
  ],
  ...['label', 'plan'],
]);

t.test('each has a description and the JSON Schema of an object', async (t) => {
  for (const { name, source, description, inputSchema } of createBuiltinTools(settingsOf())) {
    t.equal(source, 'builtin', name);
    t.ok(description.length > 20 && description.length < 400, name);
    t.match(inputSchema, { type: 'object', properties: Object }, name);
    for (const [parameter, schema] of Object.entries(v.parse(Properties, inputSchema).properties)) {
      t.ok(schema.description ?? plain.has(parameter), `${name}.${parameter} is described, or its name says it`);
    }
    t.ok(JSON.stringify(inputSchema).length < 2_000, `${name} does not cost a model much`);
  }
});

t.test('enabled names select tools in any case of letters; an empty list enables all', async (t) => {
  const tools = createBuiltinTools(settingsOf());
  t.equal(selectTools(tools, []), tools);
  t.strictSame(namesOf(selectTools(tools, ['exec', 'ReadFile'])), ['ReadFile', 'Exec']);
  t.strictSame(namesOf(selectTools(tools, ['nothing'])), []);
});

t.test('settings reach the tools', async (t) => {
  const workspacePath = temporaryWorkspace(t);
  writeFileSync(join(workspacePath, 'key.pem'), 'secret');
  const config = { Tools: { Shell: { MaxOutputChars: 1_000 }, Web: { SearchProvider: 'searxng', MaxChars: 600 } } };
  const overrides = { blockedPaths: ['key.pem'], secrets: ['a long secret'] };
  const tools = new Map(createBuiltinTools(settingsOf(config, overrides)).map((tool) => [tool.name, tool]));
  const run = async (name: string, args: object): Promise<string> => {
    const tool = tools.get(name);
    if (!tool) throw new Error(`no ${name}`);
    return (await call(tool, args, { workspacePath })).text;
  };
  t.match(await run('ReadFile', { path: 'key.pem' }), /refused/);
  t.match(
    await run('Exec', { command: 'echo a long secret; yes | head -c 5000' }),
    /^\[redacted\][\s\S]*4\d\d\d of \d+ characters are left out/,
  );
  t.match(await run('WebSearch', { query: 'x' }), /SearXNG needs the address/);
  t.match(await run('WebFetch', { url: 'http://127.0.0.1/' }), /refused/);
  t.match(JSON.stringify(tools.get('WebFetch')?.inputSchema), /500 to 600/);
});
