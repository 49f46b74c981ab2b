/** MCP servers that an editor brings: asked about, started for the session, ended with it. */
import { randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { McpServer } from '@agentclientprotocol/sdk';
import t, { type Test } from 'tap';
import { broughtServers } from '../../src/acp/editor-servers.ts';
import type { AppServerClient } from '../../src/client/index.ts';
import { editorServerAnswer, forgetEditorServers } from '../../src/config/index.ts';
import { defaults } from '../../src/protocol/index.ts';
import { calls, hangs, says, scripted } from '../agui/model.ts';
import { eventually } from '../http/support.ts';
import { program } from '../programs.ts';
import { attach, choose, inSession, introduce, type Permit, type Surroundings, surroundings } from './harness.ts';

const small = program('test/fixtures/mcp/stdio-server.mjs');
const secret = 'hush-hush-7381';

/** A real server on pipes; `mark` finds its process. */
const notes = (mark: string): McpServer => ({
  name: 'my notes',
  command: process.execPath,
  args: [small, mark],
  env: [
    { name: 'API_TOKEN', value: secret },
    { name: 'NODE_OPTIONS', value: '--no-deprecation' },
  ],
});

/** Processes with a word in their command line; one that ends meanwhile has none. */
const processesOf = (mark: string): string[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(mark);
      } catch {
        return false;
      }
    });

const newMark = (): string => `mark-${randomUUID()}`;

const withServers = (t: Test, where: Surroundings, mcpServers: McpServer[], permit?: Permit) =>
  inSession(t, where, { mcpServers, ...(permit && { permit }) });

t.test('an allowed server is started, serves its tools in the session, and ends with it', async (t) => {
  const mark = newMark();
  const provider = scripted(
    calls({ callId: 'c1', name: 'mcp__my_notes__say', args: { text: 'over there' } }),
    says('Done.'),
  );
  const where = await surroundings(t, provider);
  const editor = await withServers(t, where, [notes(mark)], () => choose('accept'));
  t.match(await editor.prompt('hi'), { stopReason: 'end_turn' });
  const [question] = editor.asked;
  t.match(question, {
    toolCall: { title: 'Start the MCP server my_notes', kind: 'execute' },
    options: [{ kind: 'allow_once' }, { kind: 'allow_always' }, { kind: 'reject_once' }, { kind: 'reject_always' }],
  });
  const text = JSON.stringify(question);
  t.match(text, new RegExp(mark));
  t.match(text, /variables: API_TOKEN, NODE_OPTIONS=--no-deprecation/);
  t.notMatch(text, new RegExp(secret));
  t.match(editor.of('tool_call_update')[0], { status: 'completed' }, 'the editor shows that it is ready');
  t.match(editor.asked[1]?.toolCall, { name: 'mcp__my_notes__say' }, 'each call is asked about');
  t.match(editor.of('tool_call_update').at(-1), { toolCallId: 'c1', status: 'completed' });
  t.equal(processesOf(mark).length, 1);
  await editor.agent.request('session/close', { sessionId: editor.sessionId });
  await eventually(() => processesOf(mark).length === 0, 'nothing is left of it');
  t.notMatch(editor.log.join(''), new RegExp(secret));
});

t.test('a declined server is not started, and the session works', async (t) => {
  const mark = newMark();
  const provider = scripted(says('hello'));
  const where = await surroundings(t, provider);
  const editor = await withServers(t, where, [notes(mark)], () => choose('decline'));
  t.match(await editor.prompt('hi'), { stopReason: 'end_turn' });
  t.equal(processesOf(mark).length, 0);
  t.notOk(provider.requests[0]?.tools?.some(({ name }) => name.startsWith('mcp__')));
  t.match(editor.of('tool_call_update'), [{ status: 'failed' }]);
});

t.test('a lasting answer holds for this editor, workspace and command only', async (t) => {
  const mark = newMark();
  const where = await surroundings(t, scripted(says('hello')));
  const first = await withServers(t, where, [notes(mark)], () => choose('acceptAlways'));
  await first.prompt('hi');
  const again = await withServers(t, where, [notes(mark)]);
  await again.prompt('hi');
  t.equal(again.asked.length, 0);
  t.equal(processesOf(mark).length, 2, 'each session has its own');
  t.notMatch(readFileSync(join(where.home, 'editor-servers.json'), 'utf8'), new RegExp(secret));
  const changed = await withServers(t, where, [{ ...notes(mark), env: [] }]);
  await changed.prompt('hi');
  t.equal(changed.asked.length, 1, 'other variables are another command');
  t.equal(forgetEditorServers(where.home, where.workspace), true);
  const later = await withServers(t, where, [notes(mark)]);
  await later.prompt('hi');
  t.equal(later.asked.length, 1);
});

t.test('a server is refused for good by `never`, and asked about again when its file has changed', async (t) => {
  const mark = newMark();
  const where = await surroundings(t, scripted(says('hello')));
  const file = join(where.workspace, 'server.mjs');
  writeFileSync(file, 'process.exit(1);\n');
  const server: McpServer = { name: 'own', command: process.execPath, args: [file, mark], env: [] };
  const first = await withServers(t, where, [server], () => choose('declineAlways'));
  await first.prompt('hi');
  const second = await withServers(t, where, [server]);
  await second.prompt('hi');
  t.equal(second.asked.length, 0);
  writeFileSync(file, 'process.exit(2);\n');
  const third = await withServers(t, where, [server]);
  await third.prompt('hi');
  t.equal(third.asked.length, 1);
});

for (const [what, name, value, command] of [
  ['a variable loads', 'NODE_OPTIONS', '--require ./hook.cjs', process.execPath],
  ['the search path finds', 'PATH', `bin:${process.env['PATH']}`, 'own-server'],
] as const) {
  t.test(`a server is asked about again when a file that ${what} has changed`, async (t) => {
    const where = await surroundings(t, scripted(says('hello')));
    mkdirSync(join(where.workspace, 'bin'));
    const [hook, own] = [join(where.workspace, 'hook.cjs'), join(where.workspace, 'bin', 'own-server')];
    const write = (code: number) => {
      writeFileSync(hook, `process.exit(${code});\n`);
      writeFileSync(own, `#!/bin/sh\nexit ${code}\n`, { mode: 0o755 });
    };
    write(1);
    const server: McpServer = { name: 'own', command, args: ['--version'], env: [{ name, value }] };
    const first = await withServers(t, where, [server], () => choose('declineAlways'));
    await first.prompt('hi');
    const second = await withServers(t, where, [server]);
    await second.prompt('hi');
    t.equal(second.asked.length, 0);
    write(2);
    const third = await withServers(t, where, [server]);
    await third.prompt('hi');
    t.equal(third.asked.length, 1);
  });
}

t.test('a file that changes while the question is open is not started', async (t) => {
  const where = await surroundings(t, scripted(says('hello')));
  const file = join(where.workspace, 'server.mjs');
  writeFileSync(file, 'process.exit(1);\n');
  const server: McpServer = { name: 'own', command: process.execPath, args: [file], env: [] };
  const editor = await withServers(t, where, [server], () => {
    writeFileSync(file, 'process.exit(2);\n');
    return choose('acceptAlways');
  });
  await editor.prompt('hi');
  t.match(JSON.stringify(editor.of('tool_call_update')), /server\.mjs changed while the question was open/);
  const settings = broughtServers([server]).get('own');
  if (!settings) throw new Error('the server is missing');
  t.equal(editorServerAnswer(where.home, { editor: 'The editor', workspace: where.workspace, settings }), undefined);
});

t.test('a server that does not start is reported, and the prompt is answered', async (t) => {
  const where = await surroundings(t, scripted(says('hello')));
  const server: McpServer = { name: 'gone', command: join(where.workspace, 'none'), args: [], env: [] };
  const editor = await withServers(t, where, [server], () => choose('accept'));
  t.match(await editor.prompt('hi'), { stopReason: 'end_turn' });
  t.match(editor.of('tool_call_update')[0], { status: 'failed' });
});

t.test('a cancelled prompt does not wait for the answer about a server', async (t) => {
  const where = await surroundings(t, scripted(says('hello')));
  const answered = Promise.withResolvers<ReturnType<typeof choose>>();
  const editor = await withServers(t, where, [notes(newMark())], () => answered.promise);
  await eventually(() => editor.asked.length === 1, 'it is asked');
  const prompted = editor.prompt('hi');
  await editor.agent.notify('session/cancel', { sessionId: editor.sessionId });
  t.match(await prompted, { stopReason: 'cancelled' });
  answered.resolve(choose('decline'));
  t.match(await editor.prompt('again'), { stopReason: 'end_turn' });
});

t.test('a configured server takes the place of one with its name', async (t) => {
  const mark = newMark();
  const McpServers = { my_notes: { transport: 'stdio', command: process.execPath, args: [small], enabled: false } };
  const where = await surroundings(t, scripted(says('hello')), { McpServers });
  const editor = await withServers(t, where, [notes(mark)], () => choose('accept'));
  await editor.prompt('hi');
  t.equal(processesOf(mark).length, 0);
  t.match(JSON.stringify(editor.of('tool_call_update')), /configured server my_notes is used instead/);
});

t.test('another connection to the agent server gets the allowed servers without a question', async (t) => {
  const mark = newMark();
  const connections: AppServerClient[] = [];
  const provider = scripted(says('one'), hangs(), says('three'));
  const where = await surroundings(t, provider);
  const editor = await inSession(t, where, {
    mcpServers: [notes(mark)],
    permit: () => choose('accept'),
    onConnect: (client) => connections.push(client),
  });
  await editor.prompt('hi');
  const before = processesOf(mark);
  const pending = editor.prompt('wait');
  await eventually(() => editor.said().endsWith('let me see'), 'it has begun to answer');
  connections[0]?.close();
  const isReplaced = () => processesOf(mark).length === 1 && processesOf(mark)[0] !== before[0];
  await eventually(isReplaced, 'the next connection has started it');
  await editor.agent.notify('session/cancel', { sessionId: editor.sessionId });
  t.match(await pending, { stopReason: 'cancelled' });
  await editor.prompt('and now?');
  t.ok(provider.requests[2]?.tools?.some(({ name }) => name === 'mcp__my_notes__say'));
  t.equal(editor.asked.length, 1);
});

t.test('servers end when the editor disconnects', async (t) => {
  const mark = newMark();
  const where = await surroundings(t, scripted(says('hello')));
  const editor = await withServers(t, where, [notes(mark)], () => choose('accept'));
  await editor.prompt('hi');
  t.equal(processesOf(mark).length, 1);
  editor.input.end();
  await editor.ended;
  await eventually(() => processesOf(mark).length === 0, 'nothing is left of it');
});

t.test('hostile lists of servers are refused without a word of their values', async (t) => {
  const where = await surroundings(t, scripted(says('hello')));
  const editor = attach(t, where);
  await introduce(editor);
  const { threadServers } = defaults.mcp;
  const many = Array.from({ length: threadServers + 1 }, (_, index) => ({ ...notes('x'), name: `s${index}` }));
  const lists: McpServer[][] = [
    many,
    [{ name: 'long', command: '/bin/true', args: Array.from({ length: 501 }, () => 'x'), env: [] }],
    [{ name: 'large', command: '/bin/true', args: ['x'.repeat(defaults.acp.serverBytes)], env: [] }],
    [{ name: 'nul', command: '/bin/tr\0ue', args: [], env: [] }],
    [{ name: 'variable', command: '/bin/true', args: [], env: [{ name: 'A=B', value: secret }] }],
    [{ type: 'http', name: 'file', url: 'file:///etc/passwd', headers: [] }],
    [{ type: 'http', name: 'header', url: 'https://example.com', headers: [{ name: 'a\nb', value: secret }] }],
    [{ type: 'sse', name: 'old', url: 'https://example.com', headers: [] }],
  ];
  for (const mcpServers of lists) {
    const refused = await editor.agent
      .request('session/new', { cwd: where.workspace, mcpServers })
      .catch((error: unknown) => error);
    t.match(refused, { code: -32_602 }, mcpServers[0]?.name ?? '');
    t.notMatch(JSON.stringify(refused), new RegExp(secret));
  }
  t.equal(readdirSync(where.home).includes('editor-servers.json'), false);
});

t.test('servers of one name get names of their own, and odd names are made plain', (t) => {
  const server = (name: string): McpServer => ({ name, command: '/bin/true', args: [], env: [] });
  const names = [...broughtServers([server('a b'), server('a_b'), server(''), server('é'.repeat(100))]).keys()];
  t.strictSame(names, ['a_b', 'a_b_2', 'server', '_']);
  t.end();
});
