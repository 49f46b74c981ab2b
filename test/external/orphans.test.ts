/**
 * kill -9 of the agent server, or of the worker process of an agent: a process that an agent has hidden by a session and an
 * environment of its own is ended all the same.
 */
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { AppServerClient } from '../../src/client/index.ts';
import { commandLine, processRecords } from '../../src/supervise/index.ts';
import { listPids, readEntry } from '../../src/supervise/procfs.ts';
import { makeWorkspace, serving, spawnServer } from '../appserver/harness.ts';
import { eventually, makeWorkspace as makeHubWorkspace, quick, startTestHub } from '../hub/harness.ts';
import { stubAgent, Talk, textOf } from './talk.ts';

const word = `2345.${process.pid}`;
const another = spawn('sleep', [word], { detached: true, stdio: 'ignore' });
t.teardown(() => another.kill('SIGKILL'));

const sleepers = (): readonly number[] =>
  listPids().filter((pid) => {
    const entry = readEntry(pid);
    return typeof entry !== 'string' && !entry.zombie && commandLine(pid) === `sleep ${word}`;
  });

/** Has the agent hide a process. Resolves when the agent server has it on disk. */
async function hide(t: Test, url: string, directory: string): Promise<void> {
  const client = await AppServerClient.connect(url, { clientInfo: { name: 'test', version: '1' } });
  t.teardown(() => client.close());
  const { thread } = (await client.request('thread/start', {})) as { thread: { id: string } };
  await client.request('turn/start', {
    threadId: thread.id,
    input: [{ type: 'text', text: `escape ${word}\nwait` }],
  });
  await eventually(
    () => {
      const hidden = sleepers().find((pid) => pid !== another.pid);
      if (hidden === undefined) return undefined;
      return read(directory).includes(`"pid":${hidden},`) || undefined;
    },
    () => `the hidden process is recorded: ${sleepers()} ${read(directory)}`,
  );
}

function read(directory: string): string {
  try {
    return readdirSync(directory)
      .map((name) => readFileSync(join(directory, name), 'utf8'))
      .join('\n');
  } catch {
    return '';
  }
}

t.test('the next start of the agent server ends the hidden processes of the agent', async (t) => {
  const { path, home } = makeWorkspace(t, stubAgent());
  const directory = processRecords(home, path);
  const first = spawnServer(t, { path, home });
  const { endpoints } = await serving(first, path);
  await hide(t, endpoints.appServerWebSocket, directory);
  first.child.kill('SIGKILL');
  await first.ended;
  t.equal(sleepers().length, 2, 'it is still there');
  await serving(spawnServer(t, { path, home }), path);
  t.same(sleepers(), [another.pid], 'and another process with the same command is not touched');
});

t.test('a Hub that notices the death ends it before it starts another agent server', async (t) => {
  const hub = await startTestHub(t);
  const workspace = makeHubWorkspace(t, { Supervision: { ...quick.Supervision, Restart: 'never' }, ...stubAgent() });
  const record = await hub.ensure(workspace);
  const directory = processRecords(hub.home, record.canonicalWorkspacePath);
  await hide(t, record.endpoints['appServerWebSocket'] ?? '', directory);
  process.kill(record.pid ?? 0, 'SIGKILL');
  await eventually(() => sleepers().length === 1 || undefined, 'the hidden process is ended');
  t.same(sleepers(), [another.pid]);
});

t.test('an agent that outlives its worker is ended with the hidden processes of the worker', async (t) => {
  const { talk } = await Talk.begin(t, '', stubAgent('', 'codex'));
  const first = await talk.say('pid', 'worker');
  t.equal((await talk.say(`escape ${word}`, 'loseworker', 'say lost')).status, 'completed');
  await eventually(() => sleepers().length === 1 || undefined, 'the hidden process is ended');
  t.same(sleepers(), [another.pid], 'and another process with the same command is not touched');
  const next = await talk.say('pid');
  t.equal(next.status, 'completed');
  t.not(textOf(next), textOf(first), 'the next turn has a new process');
});
