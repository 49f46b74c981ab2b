/** `oratorio acp` as editors run it: a process, its standard streams, and a Hub that it finds. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import type { McpServer } from '@agentclientprotocol/sdk';
import t, { type Test } from 'tap';
import { AppServerClient } from '../../src/client/index.ts';
import { calls, hangs, says, scripted } from '../agui/model.ts';
import { fakeHub, lockOf, recordOf, sendJson, statusOf, writeLock } from '../client/fake-hub.ts';
import { eventually } from '../http/support.ts';
import { program, programEnvironment } from '../programs.ts';
import { attach, choose, editorOn, introduce, type Permit, type Surroundings, surroundings } from './harness.ts';

const main = program('src/cli/main.ts');

/** A Hub that knows one workspace. */
async function withHub(t: Test, { home, workspace, server }: Surroundings): Promise<void> {
  const hub = await fakeHub((request, response) => {
    if (request.method === 'GET') sendJson(response, 200, statusOf(hub.baseUrl));
    else sendJson(response, 200, recordOf(workspace, { endpoints: { appServerWebSocket: server.webSocketUrl } }));
  });
  t.teardown(() => hub.close());
  writeLock(home, lockOf(hub.baseUrl));
}

function spawnAcp(t: Test, { home, workspace }: Surroundings) {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', main, 'acp', '--no-start'], {
    cwd: workspace,
    env: { ...programEnvironment, HOME: home, ORATORIO_HOME: home },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  child.stdin.on('error', () => undefined);
  const ended = once(child, 'close').then(([code, signal]) => (code ?? signal) as number | string);
  t.teardown(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  return { child, ended, stderr: () => stderr };
}

/** An editor that has started the agent in a process of its own. */
async function editorWithProcess(t: Test, where: Surroundings, permit?: Permit, mcpServers: McpServer[] = []) {
  await withHub(t, where);
  const process = spawnAcp(t, where);
  const { child } = process;
  const editor = editorOn(
    Writable.toWeb(child.stdin),
    Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>,
    permit,
  );
  await introduce(editor);
  const { sessionId } = await editor.agent.request('session/new', { cwd: where.workspace, mcpServers });
  return { ...editor, ...process, sessionId };
}

t.test('a session over real streams runs tool, permission and answer, and ends with the editor', async (t) => {
  const provider = scripted(
    calls({ callId: 'w1', name: 'WriteFile', args: { path: 'a.txt', content: 'hello\n' } }),
    says('Written.'),
  );
  const where = await surroundings(t, provider);
  const editor = await editorWithProcess(t, where, () => choose('accept'));
  const { sessionId } = editor;
  const answer = await editor.agent.request('session/prompt', { sessionId, prompt: [{ type: 'text', text: 'write' }] });
  t.match(answer, { stopReason: 'end_turn' });
  t.equal(editor.asked.length, 1);
  t.equal(editor.said(), 'Written.');
  t.equal(readFileSync(join(where.workspace, 'a.txt'), 'utf8'), 'hello\n');
  editor.child.stdin.end();
  t.equal(await editor.ended, 0, editor.stderr());
});

t.test('an editor that disconnects ends its prompt, not its session', async (t) => {
  const where = await surroundings(t, scripted(hangs(), says('back')));
  const editor = await editorWithProcess(t, where);
  const { sessionId } = editor;
  const prompt = [{ type: 'text' as const, text: 'hi' }];
  editor.agent.request('session/prompt', { sessionId, prompt }).catch(() => undefined);
  await eventually(() => editor.said() !== '', 'it has begun to answer');
  editor.child.stdin.destroy();
  editor.child.stdout.destroy();
  t.equal(await editor.ended, 0, editor.stderr());
  const other = await AppServerClient.connect(where.server.webSocketUrl);
  t.teardown(() => other.close());
  const read = await other.request('thread/read', { threadId: sessionId, includeTurns: true });
  t.match(read, { thread: { turns: [{ status: 'cancelled', interruptedBy: 'user' }] } });

  const later = attach(t, where);
  await introduce(later);
  await later.agent.request('session/load', { sessionId, cwd: where.workspace, mcpServers: [] });
  t.match(await later.agent.request('session/prompt', { sessionId, prompt }), { stopReason: 'end_turn' });
});

t.test('MCP servers of the editor end when the process is killed', async (t) => {
  const where = await surroundings(t, scripted(says('hi')));
  const pidFile = join(where.workspace, 'server.pid');
  // Silent, so that it starts and never becomes ready.
  const script = `require('node:fs').writeFileSync(${JSON.stringify(pidFile)}, String(process.pid)); setInterval(() => {}, 60_000)`;
  const server: McpServer = { name: 'silent', command: process.execPath, args: ['-e', script], env: [] };
  const editor = await editorWithProcess(t, where, () => choose('accept'), [server]);
  await eventually(() => existsSync(pidFile) && readFileSync(pidFile, 'utf8') !== '', 'it has started');
  const pid = Number(readFileSync(pidFile, 'utf8'));
  t.ok(existsSync(`/proc/${pid}`));
  editor.child.kill('SIGKILL');
  await editor.ended;
  await eventually(() => !existsSync(`/proc/${pid}`), 'nothing is left of it');
});

t.test('SIGTERM ends the process with exit code 0', async (t) => {
  const where = await surroundings(t, scripted(hangs()));
  const editor = await editorWithProcess(t, where);
  editor.child.kill('SIGTERM');
  t.equal(await editor.ended, 0, editor.stderr());
});

t.test('invalid frames are answered with errors; the connection stays open', async (t) => {
  const where = await surroundings(t, scripted(says('hi')));
  await withHub(t, where);
  const { child, ended } = spawnAcp(t, where);
  let written = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    written += text;
  });
  const answers = () =>
    written
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as { id: unknown; error?: { code: number }; result?: unknown })
      // A session is followed by its commands, a notification.
      .filter((answer) => 'id' in answer);
  const send = (line: string) => child.stdin.write(`${line}\n`);
  const message = (id: number, method: string, params: unknown) =>
    send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
  send('{"jsonrpc":');
  send('[]');
  send('7');
  send('{"nonsense":true}');
  await eventually(() => answers().length === 4, 'each is answered');
  t.strictSame(
    answers().map(({ error }) => error?.code),
    [-32_700, -32_600, -32_600, -32_600],
  );
  message(1, 'session/new', { cwd: where.workspace, mcpServers: [] });
  message(2, 'initialize', { protocolVersion: 'one' });
  message(3, 'initialize', { protocolVersion: 1 });
  await eventually(() => answers().length === 7, 'the introduction is answered');
  message(4, 'session/dance', {});
  message(5, 'session/new', { cwd: 7 });
  message(6, 'session/new', { cwd: '/', mcpServers: [] });
  message(7, 'session/new', { cwd: where.workspace, mcpServers: [] });
  await eventually(() => answers().length === 11, 'each is answered');
  const codes = new Map(answers().map(({ id, error }) => [id, error?.code]));
  t.equal(codes.get(1), -32_600, 'not before initialize');
  t.equal(codes.get(2), -32_602);
  t.equal(codes.get(3), undefined);
  t.equal(codes.get(4), -32_601);
  t.equal(codes.get(5), -32_602);
  t.equal(codes.get(6), -32_602, 'no workspace');
  t.equal(codes.get(7), undefined, 'and then it works');
  child.stdin.end();
  t.equal(await ended, 0);
});

t.test('without a Hub requests fail with the reason, and the process continues', async (t) => {
  const where = await surroundings(t, scripted(says('hi')));
  const { child, ended } = spawnAcp(t, where);
  const editor = editorOn(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>);
  await introduce(editor);
  const refused = await editor.agent
    .request('session/new', { cwd: where.workspace, mcpServers: [] })
    .catch((error: unknown) => error);
  t.match(refused, { code: -32_603, message: /Hub/ });
  t.match(await editor.agent.request('session/list', {}), { sessions: [] });
  child.stdin.end();
  t.equal(await ended, 0);
});
