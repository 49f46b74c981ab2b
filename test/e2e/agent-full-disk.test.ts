/** An agent server whose state is on a full disk. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { JsonRpcError, startThread } from '../../src/client/index.ts';
import { rpcErrors } from '../../src/protocol/index.ts';
import { delta, done, event, wait, write } from '../fixtures/upstream/mock-upstream.ts';
import { eventually, isAlive } from '../hub/harness.ts';
import { partialAnswer, user, workspaceWithUpstream } from './agent-faults.ts';
import {
  connect,
  heard,
  lastTurn,
  lastWords,
  obedient,
  publishedBy,
  readThread,
  runTurn,
  startApi,
  turnEnd,
} from './agent-server.ts';
import { stateOf, type Teardown } from './harness.ts';

/** Small file system for the state of a workspace where this process may mount one; otherwise a limit on the file size of its server. */
function smallDisk(t: Teardown, workspace: string) {
  const directory = stateOf(workspace);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const pid = () => publishedBy(workspace).pid;
  const limit = (bytes: string) => void execFileSync('prlimit', ['--pid', String(pid()), `--fsize=${bytes}:`]);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4m,mode=0700', 'tmpfs', directory], { stdio: 'ignore' });
  } catch {
    return { fill: () => limit('0'), makeRoom: () => limit('unlimited') };
  }
  t.teardown(() => execFileSync('umount', ['--lazy', directory]));
  const ballast = join(directory, 'ballast');
  const write = (file: string, bytes: Uint8Array) => {
    const fd = openSync(file, 'a');
    try {
      writeSync(fd, bytes);
    } finally {
      process.getBuiltinModule('node:fs').closeSync(fd);
    }
  };
  return {
    fill() {
      try {
        for (;;) write(ballast, Buffer.alloc(4096));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
      }
    },
    makeRoom: () => rmSync(ballast),
  };
}

t.test('a full disk fails turns with storageFailed until there is room again', async (t) => {
  let gate = Promise.withResolvers<void>();
  t.teardown(() => gate.resolve());
  // Long enough to need another page of the database file.
  const rest = 'and all the rest of it '.repeat(2_000);
  const { place, workspace } = await workspaceWithUpstream(t, (request) =>
    lastWords(request).words === 'talk'
      ? [...partialAnswer, wait(gate.promise), write(event(delta({ content: rest }, 'stop'))), write(done)]
      : obedient(request),
  );
  const disk = smallDisk(t, workspace);
  const { chat, url, pid } = await startApi(place, workspace);
  const client = await connect(t, workspace);
  const earlier = await startThread(client, { workspacePath: workspace });
  t.equal((await runTurn(client, earlier, 'hello')).status, 'completed');
  const saved = (await readThread(client, earlier)).turns;
  const threadId = await startThread(client, { workspacePath: workspace });
  t.equal((await runTurn(client, threadId, 'hello')).status, 'completed');

  const begins = heard(client, ({ method }) => method === 'item/agentMessage/delta');
  const ended = turnEnd(client, threadId);
  await client.request('turn/start', { threadId, input: [{ type: 'text', text: 'talk' }] });
  await begins;
  const session = { headers: { 'x-session-id': 'on-a-full-disk' } };
  const streaming = await chat({ messages: [user('talk')], stream: true }, session);
  t.equal(streaming.status, 200);
  disk.fill();
  gate.resolve();

  t.test('an active turn fails with storageFailed on both APIs', async (t) => {
    const { method, params } = await ended;
    t.match(
      { method, params },
      { method: 'turn/failed', params: { error: { code: 'storageFailed', message: /disk|room/i } } },
    );
    const last = (await streaming.text()).trim().split('\n\n').at(-1) ?? '';
    t.match(JSON.parse(last.replace(/^data: /, '')), { error: { code: 'storage_failed' } });
  });
  t.test('a new thread and a new turn are refused with storageFailed', async (t) => {
    // A short name may still fit into a page with room left.
    const refused = async () => {
      try {
        await client.request('thread/start', { displayName: 'x'.repeat(10_000) });
      } catch (error) {
        return error;
      }
      return undefined;
    };
    const error = await eventually(refused, 'a thread is refused');
    t.ok(error instanceof JsonRpcError);
    t.match(error, { code: rpcErrors.storageFailed.code });
    const answer = await chat({ messages: [user('x'.repeat(50_000))] }, session);
    t.match(
      { status: answer.status, body: await answer.json() },
      { status: 500, body: { error: { code: 'storage_failed' } } },
    );
  });
  t.test('the server stays healthy, and saved turns can be read', async (t) => {
    t.match(await (await fetch(`${url}/v1/health`)).json(), { status: 'ok' });
    t.strictSame((await readThread(client, earlier)).turns, saved);
    t.ok(isAlive(pid));
  });
  t.test('thread/read returns the failed turn as failed', async (t) => {
    const turn = await lastTurn(client, threadId);
    t.match(turn, { status: 'failed', error: { code: 'storageFailed' } });
  });
  t.test('turns complete once there is room again', async (t) => {
    disk.makeRoom();
    gate = Promise.withResolvers();
    t.match(await runTurn(client, threadId, 'hello'), { status: 'completed' });
    t.match(await runTurn(client, earlier, 'hello'), { status: 'completed' });
    const answer = await chat({ messages: [user('hello')] }, session);
    t.match({ status: answer.status, body: await answer.json() }, { status: 200 });
    t.match(
      (await readThread(client, threadId)).turns?.map(({ status }) => status),
      ['completed', 'failed', 'completed'],
    );
  });
});
