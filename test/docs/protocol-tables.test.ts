/** Tables of the documents about questions, MCP and the responses API, against the schemas and tables of the sources. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import * as v from 'valibot';
import { root } from '../../scripts/toolchain.mjs';
import { ResponsesRequest } from '../../src/chat/responses/request.ts';
import { LedTasks } from '../../src/cli/mcp-server/tasks.ts';
import { toolsFor } from '../../src/cli/mcp-server/tools.ts';
import {
  defaults,
  delegationScopes,
  McpServerAuth,
  McpServerSettings,
  mcpStartupStates,
  readElicitation,
  rpcMethods,
} from '../../src/protocol/index.ts';

const read = (file: string): string => readFileSync(join(root, file), 'utf8');
const [mcp, questions, responses] = ['mcp', 'questions', 'responses-api'].map((name) => read(`docs/${name}.md`));

/** Text between a heading and the next heading of any level. */
function section(page: string | undefined, heading: string): string {
  const [, after] = `\n${page}`.split(`\n${heading}\n`);
  if (after === undefined) throw new Error(`there is no section ${heading}`);
  return after.split(/\n#+ /)[0] ?? '';
}

/** Rows of the tables in a text, as cells without the row of titles. */
const rowsOf = (text: string): string[][] =>
  [...text.matchAll(/^\|[ :|-]+\|\n((?:\|.*\n?)+)/gm)].flatMap(([, body = '']) =>
    body
      .trim()
      .split('\n')
      .map((line) =>
        line
          .slice(1, -1)
          .split('|')
          .map((cell) => cell.trim()),
      ),
  );
const codeIn = (text = ''): string[] => [...text.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code);

t.test('docs/mcp.md lists the settings of a server with their defaults', (t) => {
  const rows = rowsOf(section(mcp, '## Configuring'));
  const schemas = McpServerSettings.options.map(({ entries }) => entries);
  t.strictSame(
    rows.flatMap(([keys]) => codeIn(keys)).toSorted(),
    [...new Set(schemas.flatMap((entries) => Object.keys(entries)))].toSorted(),
  );
  const usual = v.parse(McpServerSettings, { transport: 'stdio', command: 'x' });
  for (const [keys, , written = ''] of rows) {
    const [value] = codeIn(written).length > 0 ? codeIn(written) : [written];
    for (const key of codeIn(keys)) {
      const fixed = (usual as Record<string, unknown>)[key];
      if (typeof fixed === 'number' || typeof fixed === 'boolean') t.equal(value, String(fixed), key);
    }
  }
  t.strictSame(
    rowsOf(section(mcp, '## Log-in')).flatMap(([key]) => codeIn(key)),
    Object.keys(McpServerAuth.entries).map((key) => `auth.${key}`),
  );
  t.end();
});

t.test('docs/mcp.md lists the methods of JSON-RPC and the states of a server', (t) => {
  const text = section(mcp, '## JSON-RPC');
  t.strictSame(
    rowsOf(text)
      .flatMap(([methods]) => codeIn(methods))
      .toSorted(),
    Object.keys(rpcMethods)
      .filter((method) => method.startsWith('mcp/'))
      .toSorted(),
  );
  const [, states = ''] = /States: ([^.]+)\. Codes/.exec(text) ?? [];
  t.strictSame(codeIn(states).toSorted(), [...mcpStartupStates].toSorted());
  t.end();
});

t.test('docs/mcp.md lists the tools of each right, and the methods of their tasks', (t) => {
  const text = section(mcp, '## Oratorio as an MCP server');
  const delegated = async () => undefined;
  const tasks = new LedTasks(delegated);
  t.strictSame(
    rowsOf(text).map(([right, tools = '']) => [
      codeIn(right)[0],
      codeIn(tools).filter((name) => /^[a-z]+_[a-z]+$/.test(name)),
    ]),
    delegationScopes.map((scope) => [scope, toolsFor([scope], delegated, tasks).map(({ name }) => name)]),
  );
  const overHttp = section(mcp, '### Over HTTP');
  const served = [...read('src/chat/mcp.ts').matchAll(/^ +name: '(\w+)',$/gm)].map(([, name]) => name);
  t.strictSame(
    rowsOf(overHttp).flatMap(([tool]) => codeIn(tool).filter((name) => !name.startsWith('{'))),
    served,
  );
  const methods = [...read('src/rpc/mcp-server.ts').matchAll(/case '(tasks\/\w+)'/g)].map(([, method = '']) => method);
  for (const method of new Set(methods)) t.match(mcp, `\`${method}\``);
  t.end();
});

t.test('docs/questions.md lists the limits', (t) => {
  const limits = rowsOf(section(questions, '## Limits')).map(([, value = '']) =>
    Number((/^[\d,]+/.exec(value)?.[0] ?? '').replaceAll(',', '')),
  );
  const { openPerTurn, perTurn, answerChars } = defaults.questions;
  t.strictSame(limits, [openPerTurn, perTurn, 50, 64, answerChars]);
  const form = (properties: unknown) =>
    readElicitation({ message: 'm', requestedSchema: { type: 'object', properties } }, 'mcp', 'server').ok;
  const fields = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`f${at}`, { type: 'boolean' }]));
  t.strictSame([form(fields(50)), form(fields(51))], [true, false]);
  const long = (chars: number) => ({ x: { type: 'string', description: 'x'.repeat(chars) } });
  t.strictSame([form(long(65_000)), form(long(65_536))], [true, false]);
  t.strictSame(rowsOf(section(questions, '# Questions')).length, 3, 'our agent, external agents, MCP servers');
  t.end();
});

t.test('docs/responses-api.md lists the paths, the fields of a request and the items of its input', (t) => {
  const served = [...read('src/chat/routes.ts').matchAll(/route\('(\w+)', '(\/v1\/responses[^']*)'/g)].map(
    ([, method, path = '']) => `${method} ${path.replace(':id', '{id}')}`,
  );
  t.strictSame(
    rowsOf(section(responses, '# The responses API'))
      .map(([method, path]) => `${method} ${codeIn(path)[0]}`)
      .toSorted(),
    served.toSorted(),
  );
  const text = section(responses, '## The request');
  const written = new Set(codeIn(text).flatMap((code) => [code, code.split('.')[0]]));
  const undocumented = Object.keys(ResponsesRequest.entries).filter((field) => !written.has(field));
  t.strictSame(undocumented, []);
  const wrong = v.safeParse(ResponsesRequest, { input: [{ type: 'none' }] });
  const [, items = ''] = /one of (.+)$/.exec(wrong.issues?.[0]?.message ?? '') ?? [];
  t.ok(items.includes('function_call_output'), 'control');
  for (const item of items.split(', ')) t.match(text, item === 'message' ? 'messages' : `\`${item}\``, item);
  t.end();
});
