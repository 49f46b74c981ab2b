/** Workspaces that are moved or replaced while their real agent servers run. */
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { type AppServerRecord, rpcErrors } from '../../src/protocol/index.ts';
import { Client } from '../appserver/harness.ts';
import { makeWorkspace, quick, startTestHub } from './harness.ts';

const hub = await startTestHub(t);
const settings = {
  ...quick,
  Provider: 'demo',
  DashBoard: { Enabled: false },
};
const { code } = rpcErrors.workspaceLost;

const connect = (t: Parameters<typeof Client.ready>[0], { endpoints }: AppServerRecord) =>
  Client.ready(t, endpoints['appServerWebSocket'] ?? '');

const begin = (client: Client, threadId: string, text: string) =>
  client.ask('turn/start', { threadId, input: [{ type: 'text', text }] });

t.test('a workspace that is moved while its server runs is reported missing, and not made again', async (t) => {
  const path = makeWorkspace(t, settings);
  const events = await hub.events();
  const client = await connect(t, await hub.ensure(path));
  const { thread } = await client.call('thread/start', {});
  renameSync(path, `${path}-2`);
  t.match(await begin(client, thread.id, 'hello'), {
    error: { code, data: { kind: 'gone', path }, message: /was moved or deleted .* oratorio up/ },
  });
  const isGivenUp = ({ workspacePath, data }: { workspacePath: string | null; data: Record<string, unknown> }) =>
    workspacePath === path && data['stopped'] !== true;
  t.match((await events.wait('appserver.exited', isGivenUp)).data, { error: /does not exist/ });
  const what = new RegExp(`moved or deleted, probably to ${path}-2\\. Move it back, or remove it from the list`);
  t.match(await hub.record(path), {
    state: 'exited',
    problems: [{ code: 'workspaceGone', what, next: `oratorio stop ${path}` }],
  });
  t.notOk(existsSync(path));
  t.match(await hub.ensure(`${path}-2`), { state: 'running' }, 'its new place can be used');
  t.match(await hub.call('POST', '/v1/appservers/ensure', { workspacePath: path, startIfMissing: true }), {
    status: 404,
    body: { error: { code: 'workspaceNotFound', message: what, details: { movedTo: `${path}-2` } } },
  });
});

t.test('a stop removes a workspace from the list when its directory is gone, and only then', async (t) => {
  const [path, other] = [makeWorkspace(t, settings), makeWorkspace(t, settings)];
  await Promise.all([hub.ensure(path), hub.ensure(other)]);
  const stop = (workspacePath: string) => hub.call('POST', '/v1/appservers/stop', { workspacePath });
  const listed = async () =>
    ((await hub.call('GET', '/v1/appservers')).body as AppServerRecord[]).map((each) => each.canonicalWorkspacePath);
  t.match(await stop(path), { status: 200, body: { state: 'stopped' } });
  t.ok((await listed()).includes(path), 'control: a stopped workspace stays in the list');
  rmSync(path, { recursive: true });
  t.match(await stop(path), { status: 200, body: { state: 'stopped' } });
  t.notOk((await listed()).includes(path));
  t.ok((await listed()).includes(other));
  t.match(await stop(path), { status: 404, body: { error: { code: 'workspaceNotFound' } } });
  mkdirSync(join(path, '.oratorio'), { recursive: true });
  writeFileSync(join(path, '.oratorio', 'config.json'), JSON.stringify(settings));
  t.match(await hub.ensure(path), { state: 'running' }, 'it can come back');
});

t.test('a clone in the place of a workspace gets a server of its own, whose turns can be taken back', async (t) => {
  const path = makeWorkspace(t, settings);
  const events = await hub.events();
  const first = await hub.ensure(path);
  const before = await connect(t, first);
  const { thread } = await before.call('thread/start', { config: { approvalPolicy: 'autoApprove' } });
  const clone = join(dirname(path), 'clone');
  mkdirSync(join(clone, '.oratorio'), { recursive: true });
  writeFileSync(join(clone, '.oratorio', 'config.json'), JSON.stringify(settings));
  writeFileSync(join(clone, 'a.txt'), 'one\n');
  rmSync(path, { recursive: true });
  renameSync(clone, path);
  t.match(await begin(before, thread.id, 'hello'), {
    error: { code, data: { kind: 'replaced' }, message: /was replaced by another directory .* oratorio restart/ },
  });
  await events.wait(
    'appserver.running',
    ({ workspacePath, data }) => workspacePath === path && data['pid'] !== first.pid,
  );
  const after = await connect(t, await hub.record(path));
  await after.call('thread/resume', { threadId: thread.id });
  t.notOk((await begin(after, thread.id, 'write b.txt: new')).error);
  await after.notification('turn/completed');
  const texts = () => readdirSync(path).filter((name) => name.endsWith('.txt'));
  t.same(texts(), ['a.txt', 'b.txt']);
  await after.call('thread/rollback', { threadId: thread.id, numTurns: 1, restoreFiles: true });
  t.same(texts(), ['a.txt']);
});
