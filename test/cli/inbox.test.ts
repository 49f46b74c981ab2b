/** Waiting requests in the inbox of the command line, of a Hub whose answers are set. */
import t from 'tap';
import { fakeHub, lockOf, recordOf, sendJson, statusOf, writeLock } from '../client/fake-hub.ts';
import { runInProcess } from './in-process.ts';

const expiresAt = '2026-01-01T18:40:00.000Z';
const item = (operation: 'wait and continue' | 'continue') => ({
  ...{ kind: 'quota', workspaceId: 'w', workspacePath: '/w', displayName: 'w', actionUrl: '/w/w/', state: 'open' },
  request: {
    ...{ requestId: 'approval_1', threadId: 't', turnId: 'u', itemId: 'i', callId: 'quota', tool: 'Quota', operation },
    ...{ approvalType: 'remoteResource', target: 'at 18:40', scopeKey: 'quota:u', covers: 'this turn' },
    ...{ until: expiresAt, provider: 'p', createdAt: expiresAt, expiresAt },
  },
});

t.test('regression: a scheduled wait for a quota is listed without the time of a refusal', async (t) => {
  const home = t.testdir();
  let listed = item('continue');
  const hub = await fakeHub(({ url }, response) =>
    sendJson(response, 200, url === '/v1/status' ? statusOf(hub.baseUrl) : url === '/v1/inbox' ? [listed] : []),
  );
  t.teardown(() => hub.close());
  writeLock(home, lockOf(hub.baseUrl));
  const scheduled = await runInProcess(home, 'inbox');
  t.match(scheduled.stdout, /approval_1 +w +Quota: continue\n +at 18:40/);
  t.notMatch(scheduled.text, /declined at|--for session/);
  listed = item('wait and continue');
  t.match((await runInProcess(home, 'inbox')).stdout, `declined at ${expiresAt}`, 'without an answer, the turn fails');
});

t.test('regression: an empty inbox names the workspaces whose requests are not known yet', async (t) => {
  const home = t.testdir();
  const records = [recordOf('/work/site', { state: 'starting' }), recordOf('/work/shop')];
  const hub = await fakeHub(({ url }, response) =>
    sendJson(response, 200, url === '/v1/status' ? statusOf(hub.baseUrl) : url === '/v1/appservers' ? records : []),
  );
  t.teardown(() => hub.close());
  writeLock(home, lockOf(hub.baseUrl));
  const { stdout, stderr } = await runInProcess(home, 'inbox');
  t.equal(stdout, 'Nothing waits for you.\n');
  t.equal(stderr, 'site is starting: its requests are listed when it runs.\n');
});
