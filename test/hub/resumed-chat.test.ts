/** Turns over the death of their agent server, below a Hub: a prompt of the command line, and a sub-agent with a command in its sandbox. */
import { existsSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { Sandboxes } from '../../src/agent/index.ts';
import { AppServerClient } from '../../src/client/index.ts';
import type { Item } from '../../src/protocol/index.ts';
import { runInProcess } from '../cli/in-process.ts';
import { eventually, killIfThere, makeWorkspace, quick, startTestHub } from './harness.ts';

const hub = await startTestHub(t);
const hasSandbox = await (async () => {
  const sandboxes = new Sandboxes(process.env);
  return sandboxes.areAvailable().finally(() => sandboxes.close());
})();

/** A workspace, and the death of its agent server in a command that has made the file `began`. The next server runs at the end. */
async function workspaceOf(t: Test) {
  const workspace = makeWorkspace(t, { ...quick, Provider: 'demo', DashBoard: { Enabled: false } });
  const { pid, endpoints } = await hub.ensure(workspace);
  const at = (name: string) => join(workspace, name);
  const kill = async () => {
    await eventually(() => existsSync(at('began')) || undefined, 'the command runs');
    killIfThere(pid ?? 0);
    return eventually(async () => {
      const record = await hub.record(workspace);
      return record.state === 'running' && record.pid !== pid ? record : undefined;
    }, 'the next server runs');
  };
  return { workspace, at, kill, endpoints };
}

t.test('chat connects again through the Hub, and prints the rest of the answer', async (t) => {
  const { workspace, at, kill } = await workspaceOf(t);
  const command = 'run: touch began; until [ -e gate ]; do sleep 0.1; done; echo over';
  const chat = runInProcess(hub.home, 'chat', command, '--yes', '--workspace', workspace);
  await kill();
  writeFileSync(at('gate'), '');
  const { code, text } = await chat;
  t.equal(code, 0, text);
  t.match(text, /↻ The agent server was restarted; this turn goes on/);
});

t.test('chat whose agent server is stopped names the commands that resume the turn and print its answer', async (t) => {
  const { workspace, at } = await workspaceOf(t);
  const command = 'run: touch began; sleep 300';
  const chat = runInProcess(hub.home, 'chat', command, '--yes', '--workspace', workspace);
  await eventually(() => existsSync(at('began')) || undefined, 'the command runs');
  await runInProcess(hub.home, 'stop', workspace);
  const { code, text } = await chat;
  t.equal(code, 1, text);
  t.match(text, /The turn is suspended[\s\S]*oratorio ensure; [\s\S]*oratorio threads export --thread thread_/);
});

t.test(
  'a command of a sub-agent in the sandbox outlives a kill, and the call of its parent gets the result',
  async (t) => {
    const { at, kill, endpoints } = await workspaceOf(t);
    const config = { approvalPolicy: 'autoApprove' };
    const first = await AppServerClient.connect(endpoints['appServerWebSocket'] ?? '');
    const { thread } = (await first.request('thread/start', { config })) as { thread: { id: string } };
    const steps =
      'readlink /proc/self/ns/mnt > ns; echo x >> effects; touch began; until [ -e gate ]; do sleep 0.1; done; echo over';
    const input = [{ type: 'text', text: `delegate: "run: ${steps}"` }];
    await first.request('turn/start', { threadId: thread.id, input });
    const next = await AppServerClient.connect((await kill()).endpoints['appServerWebSocket'] ?? '');
    t.teardown(() => next.close());
    writeFileSync(at('gate'), '');
    const turn = await eventually(async () => {
      const read = await next.request('thread/read', { threadId: thread.id, includeTurns: true });
      const { turns } = (read as { thread: { turns: { completedAt?: string; resumes?: number; items: Item[] }[] } })
        .thread;
      return turns[0]?.completedAt === undefined ? undefined : turns[0];
    }, 'the turn ends');
    t.match(turn, { status: 'completed', resumes: 1 });
    t.match(
      turn.items.filter(({ type }) => type === 'toolResult'),
      [{ outcome: 'completed', text: /over/ }],
    );
    t.equal(readFileSync(at('effects'), 'utf8'), 'x\n');
    t.equal(
      readFileSync(at('ns'), 'utf8').trim() !== readlinkSync('/proc/self/ns/mnt'),
      hasSandbox,
      'it ran in the sandbox',
    );
  },
);
