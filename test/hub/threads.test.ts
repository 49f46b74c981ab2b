/** Conversations of all workspaces: a Hub, agent servers with the demo model, and databases that no server holds. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import * as v from 'valibot';
import { AppServerClient, HubClient } from '../../src/client/index.ts';
import { workspaceStateDirectory } from '../../src/config/index.ts';
import { type AppServerRecord, HubThreadList } from '../../src/protocol/index.ts';
import { eventually, makeWorkspace, quick, startTestHub } from './harness.ts';

const settings = { ...quick, Provider: 'demo', DashBoard: { Enabled: false } };
const hub = await startTestHub(t);
const site = makeWorkspace(t, settings, 'site');
const shop = makeWorkspace(t, settings, 'shop');

const idOf = ({ page }: AppServerRecord): string => page?.split('/')[2] ?? '';

async function list(query = ''): Promise<HubThreadList> {
  return v.parse(HubThreadList, (await hub.call('GET', `/v1/threads${query}`)).body);
}

const names = ({ threads }: HubThreadList) => threads.map(({ name }) => name);

/** Begins a conversation and a turn in it. */
async function talk(record: AppServerRecord, text: string, more: Record<string, unknown> = {}) {
  const client = await AppServerClient.connect(record.endpoints['appServerWebSocket'] ?? '', {
    clientInfo: { name: 'test', version: '1' },
  });
  t.teardown(() => client.close());
  const { thread } = (await client.request('thread/start', more)) as { thread: { id: string } };
  await client.request('turn/start', { threadId: thread.id, input: [{ type: 'text', text }] });
  return thread.id;
}

const records = await Promise.all([hub.ensure(site), hub.ensure(shop)]);
const [ofSite, ofShop] = records;
if (!ofSite || !ofShop) throw new Error('two workspaces');
const siteId = idOf(ofSite);
const shopId = idOf(ofShop);

t.test('lists the threads of all workspaces, the newest first, with the state of each', async (t) => {
  t.same(await list(), { threads: [], hasMore: false, workspaces: [] });
  const first = await talk(ofSite, 'say hello', { displayName: 'Greeting', identity: { channelName: 'page' } });
  await eventually(async () => (await list()).threads[0]?.lastTurn?.status === 'completed', 'the first turn has ended');
  const second = await talk(ofShop, 'run: touch waits\nsecond line');
  const found = await eventually(async () => {
    const now = await list();
    return now.threads[0]?.activity === 'waiting' ? now : undefined;
  }, 'the second turn waits');
  t.match(found.threads, [
    {
      ...{
        workspaceId: shopId,
        threadId: second,
        name: 'run: touch waits',
        status: 'active',
        activity: 'waiting',
      },
      ...{
        channel: null,
        lastTurn: { status: 'waitingApproval' },
        actionUrl: `/w/${shopId}/#/chat/${second}`,
      },
    },
    { workspaceId: siteId, threadId: first, name: 'Greeting', activity: 'idle', channel: 'page' },
  ]);
  t.match(found.workspaces.map(({ displayName, state, problem }) => [displayName, state, problem]).sort(), [
    ['shop', 'running', null],
    ['site', 'running', null],
  ]);
  t.match(await list('?limit=1'), { threads: [{ workspaceId: shopId }], hasMore: true });
});

t.test('searches names, first words and workspaces, and refuses an invalid search', async (t) => {
  t.same(names(await list('?q=gREET')), ['Greeting']);
  t.same(names(await list('?q=touch')), ['run: touch waits']);
  t.same(names(await list('?q=shop')), ['run: touch waits'], 'by the name of the workspace');
  t.same(names(await list('?q=%25')), [], 'no pattern');
  for (const query of ['limit=0', 'limit=201', 'limit=x', 'archived=perhaps', 'forks=1', `q=${'x'.repeat(201)}`])
    t.match(await hub.call('GET', `/v1/threads?${query}`), {
      status: 400,
      body: { error: { code: 'invalidRequest' } },
    });
});

t.test('renames, archives and unarchives through the agent server', async (t) => {
  const client = new HubClient(hub.lock);
  const threadId = (await client.threads({ q: 'greeting' })).threads[0]?.threadId ?? '';
  await client.changeThread(siteId, threadId, { displayName: 'Renamed' });
  await client.changeThread(siteId, threadId, { isArchived: true });
  t.same(names(await list('?q=renamed')), []);
  t.match((await list('?q=renamed&archived=true')).threads, [{ threadId, status: 'archived' }]);
  await client.changeThread(siteId, threadId, { isArchived: false });
  t.same(names(await list('?q=renamed')), ['Renamed']);
  const change = (id: string, thread: string, body: unknown) => hub.call('POST', `/v1/threads/${id}/${thread}`, body);
  for (const body of [{}, { displayName: ' ' }, { displayName: 'x'.repeat(201) }, { isArchived: 'yes' }, { other: 1 }])
    t.match(await change(siteId, threadId, body), { status: 400, body: { error: { code: 'invalidRequest' } } });
  t.match(await change('aaaaaaaaaaaaaaaa', threadId, { isArchived: true }), { status: 404 });
  t.match(await change(siteId, 'thread_unknown', { isArchived: true }), { status: 404 });
  t.same(names(await list('?q=renamed')), ['Renamed'], 'a refusal changes nothing');
});

t.test('a stopped workspace is listed, says so and cannot be changed', async (t) => {
  await hub.call('POST', '/v1/appservers/stop', { workspacePath: site });
  const found = await list('?q=renamed');
  t.match(found, {
    threads: [{ workspaceId: siteId, name: 'Renamed', activity: 'idle', lastTurn: { status: 'completed' } }],
    workspaces: [{ displayName: 'site', state: 'stopped', stateWord: 'stopped', problem: null }],
  });
  t.same(await list('?q=renamed'), found, 'unchanged, and from what is stored');
  const { threadId = '' } = found.threads[0] ?? {};
  t.match(await hub.call('POST', `/v1/threads/${siteId}/${threadId}`, { isArchived: true }), {
    status: 503,
    body: { error: { code: 'workspaceUnavailable' } },
  });
});

t.test('a database that cannot be read is named, and the others are listed', async (t) => {
  const third = makeWorkspace(t, settings, 'third');
  const record = await hub.ensure(third);
  await hub.call('POST', '/v1/appservers/stop', { workspacePath: third });
  const directory = workspaceStateDirectory(hub.home, record.canonicalWorkspacePath);
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, 'state.db'), 'no database');
  const found = await list();
  t.match(
    found.workspaces.find(({ displayName }) => displayName === 'third'),
    { workspaceId: idOf(record), state: 'stopped', problem: /state\.db/ },
  );
  t.same(names(found), ['run: touch waits', 'Renamed']);
});
