/** An open approval over the death of its agent server, of the Hub, and of both: the same request, answered once. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { AppServerClient } from '../../src/client/index.ts';
import type { AppServerRecord, InboxItem } from '../../src/protocol/index.ts';
import { runInProcess } from '../cli/in-process.ts';
import {
  eventually,
  isAlive,
  killIfThere,
  makeWorkspace,
  quick,
  startTestHub,
  type TestHub,
  temporaryDirectory,
} from './harness.ts';

const settings = { ...quick, Provider: 'demo', DashBoard: { Enabled: false } };
const idOf = ({ page }: AppServerRecord): string => page?.split('/')[2] ?? '';

/** A turn that waits for the approval of `touch done`. */
async function waiting(t: Test) {
  const home = temporaryDirectory(t, 'oratorio-home-');
  const hub = await startTestHub(t, { home });
  const workspace = makeWorkspace(t, settings);
  const record = await hub.ensure(workspace);
  const client = await AppServerClient.connect(record.endpoints['appServerWebSocket'] ?? '');
  t.teardown(() => client.close());
  const { thread } = (await client.request('thread/start', {})) as { thread: { id: string } };
  await client.request('turn/start', { threadId: thread.id, input: [{ type: 'text', text: 'run: touch done' }] });
  const { request } = await eventually(() => listed(hub), 'the request is listed');
  return { home, hub, workspace, record, request };
}

async function listed(hub: TestHub, state: InboxItem['state'] = 'open'): Promise<InboxItem | undefined> {
  const items: InboxItem[] = (await hub.call('GET', '/v1/inbox')).body;
  return items.find((item) => item.state === state);
}

/** Answers the request once, sees its effect, and is refused a second time. */
async function decide(t: Test, hub: TestHub, { record, workspace, request }: Awaited<ReturnType<typeof waiting>>) {
  const path = `/v1/inbox/${idOf(record)}/${request.requestId}`;
  t.match(await hub.call('POST', path, { decision: 'accept' }), { status: 200, body: { decision: 'accept' } });
  t.match(await hub.call('POST', path, { decision: 'decline' }), { status: 409 });
  await eventually(() => existsSync(join(workspace, 'done')) || undefined, 'the command runs');
  const history = (await hub.call('GET', '/v1/inbox/history')).body;
  t.equal(history.length, 1, 'one decision is on the record');
  await eventually(async () => (await hub.record(workspace)).turnsResumed === 0 || undefined, 'the turn has ended');
}

t.test('an approval is suspended with its killed agent server, and waits again under its id', async (t) => {
  const asked = await waiting(t);
  const { hub, workspace, record, request } = asked;
  const events = await hub.events();
  killIfThere(record.pid ?? 0);
  const running = await events.wait('appserver.running');
  t.equal(running.data['turnsResumed'], 1);
  const item = await eventually(() => listed(hub), 'it waits again');
  t.same(item.request, request);
  t.equal((await hub.record(workspace)).turnsResumed, 1);
  t.match(await runInProcess(hub.home, 'list'), { text: /1 waiting for approval, 1 turn goes on/ });
  t.notOk(events.seen.some(({ kind }) => kind === 'inbox.resolved' || kind === 'inbox.added'));
  await decide(t, hub, asked);
  events.close();
  await hub.shutdown();
});

t.test('an approval outlives the Hub and the agent server, and the next Hub resumes its turn unasked', async (t) => {
  const asked = await waiting(t);
  const { home, hub, record, request } = asked;
  await hub.kill('SIGKILL');
  killIfThere(record.pid ?? 0);
  await eventually(() => !isAlive(record.pid ?? 0) || undefined, 'the server has ended');
  const next = await startTestHub(t, { home });
  const item = await eventually(() => listed(next), 'it waits again');
  t.same(item.request, request);
  await decide(t, next, asked);
  await next.shutdown();
});

t.test('an approval outlives a restart of its agent server', async (t) => {
  const asked = await waiting(t);
  const { hub, workspace, request } = asked;
  t.match(await runInProcess(hub.home, 'restart', workspace), { code: 0 });
  const item = await eventually(() => listed(hub), 'it waits again');
  t.same(item.request, request);
  await decide(t, hub, asked);
  await hub.shutdown();
});

t.test('a stop suspends the turn of an approval, and the next start asks again', async (t) => {
  const asked = await waiting(t);
  const { hub, workspace, request } = asked;
  t.match(await runInProcess(hub.home, 'stop', workspace), { code: 0 });
  t.same((await hub.call('GET', '/v1/inbox')).body, [], 'nobody can answer it now');
  t.same((await hub.call('GET', '/v1/inbox/history')).body, [], 'a suspension is not a decision');
  t.match(await runInProcess(hub.home, 'list'), { text: /1 turn goes on with the next start/ });
  await hub.ensure(workspace);
  const item = await eventually(() => listed(hub), 'it waits again');
  t.same(item.request, request);
  await hub.shutdown();
});

t.test('stop --end-turns cancels the turn of an approval', async (t) => {
  const { hub, workspace } = await waiting(t);
  t.match(await runInProcess(hub.home, 'stop', workspace, '--end-turns'), { code: 0 });
  t.match((await hub.call('GET', '/v1/inbox/history')).body, [{ reason: 'turnEnded' }], 'control: a decision');
  t.equal((await hub.record(workspace)).turnsResumed, 0);
  await hub.ensure(workspace);
  t.equal(await listed(hub), undefined);
  t.equal((await hub.record(workspace)).turnsResumed, 0);
  await hub.shutdown();
});
