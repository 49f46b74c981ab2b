/** Requests of agent servers that die: suspended until the next server names them, or withdrawn. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { AppServerRecord, InboxItem } from '../../src/protocol/index.ts';
import { agentServerFixture, eventually, killIfThere, makeWorkspace, startTestHub, type TestHub } from './harness.ts';

/** A restart that only a request makes. */
const patient = { Supervision: { BackoffBaseMs: 600_000, BackoffCapMs: 600_000, ProbeIntervalMs: 100 } };
const hub = await startTestHub(t, { agentServer: agentServerFixture('has-feed.ts') });

const requestNamed = (requestId: string) => ({
  ...{ requestId, threadId: 'thread_1', turnId: 'turn_001', itemId: 'item_1', callId: 'call_1' },
  ...{ tool: 'Exec', operation: 'run', target: 'make', approvalType: 'shell', scopeKey: 'make' },
  ...{ createdAt: '2026-01-01T00:00:00.000Z', expiresAt: '2099-01-01T00:00:00.000Z' },
});

const idOf = ({ page }: AppServerRecord): string => page?.split('/')[2] ?? '';

async function listed(of: TestHub, workspaceId: string): Promise<[string, string][]> {
  const items: InboxItem[] = (await of.call('GET', '/v1/inbox')).body;
  return items
    .filter((item) => item.workspaceId === workspaceId)
    .map(({ request, state }): [string, string] => [request.requestId, state]);
}

/** A workspace whose agent server has asked. */
async function asking(test: Test, config: Parameters<typeof makeWorkspace>[1], ...requestIds: string[]) {
  const workspace = makeWorkspace(test, config);
  const open = (...ids: string[]) => writeFileSync(join(workspace, 'open.json'), JSON.stringify(ids.map(requestNamed)));
  open(...requestIds);
  const record = await hub.ensure(workspace);
  const id = idOf(record);
  await eventually(async () => (await listed(hub, id)).length === requestIds.length || undefined, 'it has asked');
  const answer = (requestId: string, decision = 'accept') =>
    hub.call('POST', `/v1/inbox/${id}/${requestId}`, { decision });
  return { workspace, record, id, open, answer };
}

t.test('requests of a killed server are suspended, and the state of the next server decides about them', async (t) => {
  const { workspace, record, id, open, answer } = await asking(t, patient, 'approval_1', 'approval_2');
  const events = await hub.events();
  killIfThere(record.pid ?? 0);
  await events.wait('appserver.exited', ({ workspacePath }) => workspacePath === record.canonicalWorkspacePath);
  t.same(await listed(hub, id), [
    ['approval_1', 'suspended'],
    ['approval_2', 'suspended'],
  ]);
  const refused = await answer('approval_1');
  t.match(refused, {
    status: 503,
    body: { error: { code: 'workspaceUnavailable', message: /Try again after \d+ s/, details: { state: 'exited' } } },
  });
  t.match(refused.headers.get('retry-after'), /^\d+$/);
  t.match(await answer('approval_unknown'), { status: 503 }, 'the next server may name this one');
  t.notOk(
    events.seen.some(({ kind }) => kind === 'inbox.resolved'),
    'a suspension decides nothing',
  );
  t.same((await hub.call('GET', '/v1/inbox/history')).body, [], 'and is not on the record');
  open('approval_1');
  await hub.ensure(workspace);
  t.match(await events.wait('inbox.resolved'), { data: { requestId: 'approval_2', reason: 'agentServerEnded' } });
  t.same(await listed(hub, id), [['approval_1', 'open']]);
  t.match(await answer('approval_1'), { status: 200, body: { decision: 'accept' } });
  t.match(await answer('approval_1', 'decline'), { status: 409 });
  t.equal(readFileSync(join(workspace, 'answers.txt'), 'utf8'), 'approval_1 accept\n');
  t.equal(events.seen.filter(({ kind }) => kind === 'inbox.added').length, 0, 'it is announced once');
  events.close();
});

t.test('a stopped server withdraws its requests, and a later server may name them again', async (t) => {
  const { workspace, id, answer } = await asking(t, patient, 'approval_3');
  await hub.call('POST', '/v1/appservers/stop', { workspacePath: workspace });
  t.same(await listed(hub, id), []);
  t.match(await answer('approval_3'), { status: 409, body: { error: { details: { reason: 'agentServerEnded' } } } });
  await hub.ensure(workspace);
  await eventually(async () => (await listed(hub, id)).length === 1 || undefined, 'the request is listed again');
  t.match(await answer('approval_3'), { status: 200 });
});

t.test('a stop while the requests are suspended withdraws them', async (t) => {
  const { workspace, record, id } = await asking(t, patient, 'approval_4');
  killIfThere(record.pid ?? 0);
  await eventually(async () => (await listed(hub, id))[0]?.[1] === 'suspended' || undefined, 'it is suspended');
  await hub.call('POST', '/v1/appservers/stop', { workspacePath: workspace });
  t.same(await listed(hub, id), []);
});

t.test('a server that is given up withdraws its requests', async (t) => {
  const { record, id } = await asking(t, { Supervision: { MaxRestarts: 0, BackoffBaseMs: 1 } }, 'approval_5');
  killIfThere(record.pid ?? 0);
  await eventually(async () => (await listed(hub, id)).length === 0 || undefined, 'it is withdrawn');
});

t.test('an answer that was lost with its server can be given again', async (t) => {
  const { workspace, record, id, answer } = await asking(t, patient, 'approval_6');
  t.match(await answer('approval_6'), { status: 200 });
  t.same(await listed(hub, id), []);
  killIfThere(record.pid ?? 0);
  await eventually(async () => (await hub.record(workspace)).state === 'exited' || undefined, 'the server has ended');
  await hub.ensure(workspace);
  await eventually(async () => (await listed(hub, id))[0]?.[1] === 'open' || undefined, 'it is asked again');
  t.match(await answer('approval_6'), { status: 200 });
});
