/** Examples of `docs/providers.md`: each of the demo model, with the real tools. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import * as v from 'valibot';
import type { ModelError, ModelMessage, ModelToolCall } from '../../../src/agent/model.ts';
import { DemoProvider } from '../../../src/agent/providers/demo.ts';
import type { Tool, ToolContext, ToolResult } from '../../../src/agent/tool.ts';
import { createBuiltinTools } from '../../../src/agent/tools/index.ts';
import { Config } from '../../../src/config/index.ts';
import { defaults } from '../../../src/protocol/index.ts';
import { answerOf, collect, user } from './helpers.ts';

const page = readFileSync(join(import.meta.dirname, '../../../docs/providers.md'), 'utf8');
const files = { 'notes.txt': 'alpha\nto do: test\nlast\n', src: { 'a.ts': 'let a;\n' }, docs: { 'b.md': '# B\n' } };

interface Workspace {
  readonly path: string;
  readonly tools: readonly Tool[];
}

function workspace(t: Test, allowedHosts: readonly string[] = []): Workspace {
  const path = t.testdir({ work: files, home: {} });
  const { Tools } = v.parse(Config, { Tools: { Web: { AllowedHosts: allowedHosts } } });
  const tools = createBuiltinTools({
    tools: Tools,
    blockedPaths: [],
    passEnvironment: [],
    secrets: [],
    environment: process.env,
    home: join(path, 'home'),
  });
  return { path: join(path, 'work'), tools };
}

function contextOf(workspacePath: string, callId: string): ToolContext {
  return {
    workspacePath,
    threadId: 't',
    turnId: 'u',
    callId,
    signal: new AbortController().signal,
    onOutput: () => {},
    isApproved: () => false,
    spawnSubagent: async (task) => ({ text: `The sub-agent was answerOf: ${task}`, isError: false }),
  };
}

/** Runs a call as the runtime would, everything allowed. */
async function run({ path, tools }: Workspace, { name, arguments: args, callId }: ModelToolCall): Promise<ToolResult> {
  const tool = tools.find((each) => each.name === name);
  if (!tool) return { text: `Error: no tool ${name}`, isError: true };
  const parsed = tool.parse(JSON.parse(args));
  return parsed.ok ? tool.run(parsed.args, contextOf(path, callId)) : { text: `Error: ${parsed.error}`, isError: true };
}

/** One turn of the demo model with the real tools. */
async function turn(place: Workspace, words: string) {
  const provider = new DemoProvider({ paceMs: 0 });
  const messages: ModelMessage[] = [user(words)];
  const done: { readonly name: string; readonly result: ToolResult }[] = [];
  for (;;) {
    const { text, calls } = answerOf(await collect(provider, { messages, tools: place.tools }));
    if (calls.length === 0) return { answer: text, done };
    messages.push({ role: 'assistant', text, toolCalls: calls });
    for (const call of calls) {
      const result = await run(place, call);
      done.push({ name: call.name, result });
      messages.push({ role: 'tool', ...call, content: [{ type: 'text', text: result.text }] });
    }
  }
}

/** The rows of the table of sentences. */
const sentences = [...page.matchAll(/^\| (`{1,2}) ?(.+?) ?\1 \| `(\w+)` \|$/gm)].map(([, , words = '', tool = '']) => ({
  words,
  tool,
}));

t.test('every sentence of the table calls the tool beside it, which succeeds', async (t) => {
  t.ok(sentences.length > 12);
  const server = createServer((_, response) => {
    response.setHeader('content-type', 'text/plain').end('the page');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  const host = `127.0.0.1:${(server.address() as { port: number }).port}`;
  for (const { words, tool } of sentences) {
    const { done, answer } = await turn(workspace(t, [host]), words.replace('127.0.0.1:8000', host));
    t.match(done, [{ name: tool, result: { isError: tool === 'WebSearch' } }], words);
    t.equal(done.length, 1);
    t.match(answer, tool === 'WebSearch' ? /0 of 1 step done/ : /1 of 1 step done/);
  }
});

t.test('the example of several steps creates, edits, searches and runs a file', async (t) => {
  const [, example = ''] = /^````demo\n(.*?)^````$/ms.exec(page) ?? [];
  const place = workspace(t);
  const { done, answer } = await turn(place, example);
  t.same(
    done.map(({ name, result }) => [name, result.isError]),
    [
      ['WriteFile', false],
      ['EditFile', false],
      ['GrepFiles', false],
      ['Exec', false],
    ],
  );
  t.equal(readFileSync(join(place.path, 'hello.sh'), 'utf8'), 'name="Oratorio"\necho "Hello, $name!"\n');
  t.match(answer, /4 of 4 steps done/);
  t.match(answer, / {4}Hello, Oratorio!/, 'the report shows what the command printed');
});

t.test('a failed command is reported as failed', async (t) => {
  const { done, answer } = await turn(workspace(t), 'run: exit 3 then read notes.txt');
  t.equal(done.length, 1);
  t.match(answer, /failed by Exec/);
});

t.test('quoted text is written exactly, other text with a final line break', async (t) => {
  const place = workspace(t);
  await turn(place, 'write "exact\\ttext" to a.txt then write b.txt: Hello then append to b.txt: "it\'s"');
  t.equal(readFileSync(join(place.path, 'a.txt'), 'utf8'), 'exact\ttext');
  t.equal(readFileSync(join(place.path, 'b.txt'), 'utf8'), "Hello\nit's\n");
});

t.test('the page names every setting with its default, every error, and the retry delays', async (t) => {
  const { UpstreamIdleMs, UpstreamRetries, StreamUpstream } = v.parse(Config, {});
  t.match(page, new RegExp(`\`UpstreamIdleMs\` \\|.*\\| ${UpstreamIdleMs / 1000} 000 \\|`));
  t.match(page, new RegExp(`\`UpstreamRetries\` \\|.*\\| ${UpstreamRetries} \\|`));
  t.match(page, new RegExp(`\`StreamUpstream\` \\|.*\\| \`${StreamUpstream}\` \\|`));
  t.equal(defaults.upstream.retries, UpstreamRetries);
  t.equal(defaults.upstream.idleMs, UpstreamIdleMs);
  const codes: Readonly<Record<ModelError['code'], true>> = {
    upstreamUnreachable: true,
    upstreamUnauthorized: true,
    upstreamRateLimited: true,
    upstreamRejected: true,
    upstreamFailed: true,
    upstreamProtocol: true,
    contextTooLong: true,
    upstreamQuotaExceeded: true,
    upstreamEmptyAnswer: true,
    answerTooLong: true,
  };
  for (const code of Object.keys(codes)) t.match(page, new RegExp(`^\\| \`${code}\` \\|`, 'm'));
});
