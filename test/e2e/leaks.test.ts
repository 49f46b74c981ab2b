/**
 * Kills Hub and agent servers at varying moments: the product recovers, loses nothing and leaks no resource.
 *
 * `ORATORIO_LEAK_ROUNDS=100 npm test -- test/e2e/leaks.test.ts` makes it as many rounds as you like. One that leaves something
 * behind is seen at the end of the run; six cover the moments from before the death is known to after the revival.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { AppServerClient } from '../../src/client/index.ts';
import { eventually, isAlive } from '../hub/harness.ts';
import {
  agentServersUnder,
  answerOf,
  type BuiltHub,
  followEvents,
  type Inventory,
  listeningSockets,
  makePlace,
  oratorio,
  oratorioJson,
  type Place,
  runningHub,
  say,
  startHub,
  takeInventory,
  untilNoneRuns,
} from './harness.ts';

const rounds = Math.max(2, Number(process.env['ORATORIO_LEAK_ROUNDS'] ?? 6));
/** The last moment at which a Hub is killed without having revived its server for sure. */
const lastMomentMs = 300;
const quick = { Supervision: { BackoffBaseMs: 40, ProbeIntervalMs: 100, MaxRestarts: 100 } };

async function ask(url: string, workspacePath: string, prompt: string): Promise<string> {
  const client = await AppServerClient.connect(url);
  try {
    return await answerOf(await say(client, workspacePath, prompt));
  } finally {
    client.close();
  }
}

/** Watches for a second agent server of one workspace, which must never exist, not for a moment. */
function watchForDuplicates(place: Place) {
  const duplicates: string[] = [];
  // To read the command lines of all processes each time would be half of the work of this test.
  const reads = new Map<number, number>();
  let polls = 0;
  const timer = setInterval(() => {
    polls += 1;
    // A process may have the identifier of one that has ended.
    if (polls % 100 === 0) reads.clear();
    const servers = agentServersUnder(place.root, reads);
    const workspaces = new Set(servers.map(({ workspace }) => workspace));
    if (workspaces.size < servers.length) duplicates.push(JSON.stringify(servers));
  }, 100);
  return {
    duplicates,
    stop: () => clearInterval(timer),
  };
}

/** Ends server and Hub: from before the Hub can know of it, through back-off and start, to after the revival. */
async function killBoth(round: number, server: number, hub: BuiltHub, workspacePath: string): Promise<void> {
  if (round === 0) process.kill(hub.pid, 'SIGKILL');
  process.kill(server, 'SIGKILL');
  if (round === rounds - 1) {
    await eventually(async () => {
      const { state, pid } = await hub.client.byWorkspace(workspacePath);
      return (state === 'running' && pid !== server) || undefined;
    }, 'it is revived');
  } else await sleep((round / rounds) * lastMomentMs);
  if (round > 0) process.kill(hub.pid, 'SIGKILL');
  await eventually(() => !isAlive(hub.pid) || undefined, 'the Hub is dead');
}

/** Locks of Hub and agent servers. The database of a workspace has its own locks while it is open. */
const mutexes = ({ locks }: Inventory): string[] => locks.filter((lock) => lock.endsWith('.mutex')).toSorted();

/** True when no process runs, listens or holds a lock. Files are compared separately. */
function isAtRest({ processes, sockets, locks }: Inventory): true | undefined {
  return (processes.length === 0 && sockets.length === 0 && locks.length === 0) || undefined;
}

t.test(`${rounds} rounds of kill -9 at varying moments leave nothing behind and nothing twice`, async (t) => {
  const place = makePlace(t);
  const workspace = place.workspace('site', quick);

  t.match(await oratorio(place, ['up', workspace, '--no-follow']), { code: 0, stdout: /running/ });
  t.match(await oratorio(place, ['chat', 'hello', '--workspace', workspace]), { code: 0, stdout: /Demo model/ });
  const inUse = takeInventory(place);
  t.equal(inUse.processes.length, 2, 'one Hub, one agent server');
  t.equal(inUse.sockets.length, 3, 'the Hub, the agent server and its dashboard listen');
  t.same(mutexes(inUse), ['home/hub/hub.mutex', 'site/.oratorio/appserver.mutex']);
  t.match(await oratorio(place, ['stop', workspace]), { code: 0 });
  t.match(await oratorio(place, ['hub', 'stop']), { code: 0 });
  const before = takeInventory(place);
  t.ok(isAtRest(before));
  t.same(
    before.files
      .filter((file) => !/^home\/hub\/logs\/[0-9a-f]{24}\/(std(out|err)\.log|exits\.json)$/.test(file))
      .map((file) => file.replace(/^(home\/workspaces\/)[0-9a-f]{24}\//, '$1KEY/')),
    [
      'home/hub/adoption.key',
      'home/hub/appservers.json',
      'home/hub/hub.log',
      'home/hub/hub.mutex',
      'home/hub/page.token',
      'home/hub/port.json',
      'home/trust.json',
      'home/workspaces/KEY/dashboard.token',
      'home/workspaces/KEY/imported.json',
      'home/workspaces/KEY/state.db',
      'site/.oratorio/appserver.mutex',
      'site/.oratorio/config.json',
    ],
    'no address, no temporary file',
  );

  const watch = watchForDuplicates(place);
  t.teardown(watch.stop);
  const everListened = new Set(inUse.sockets);
  let revivals = 0;
  let adoptions = 0;
  // The Hub of the round before, if it runs.
  let running: BuiltHub | undefined;
  for (let round = 0; round < rounds; round++) {
    const first = running ?? (await startHub(place));
    const record = await first.client.ensure({ workspacePath: workspace });
    const url = record.endpoints['appServerWebSocket'] ?? '';
    t.match(await ask(url, workspace, `echo round ${round}`), `round ${round}`);
    await killBoth(round, record.pid ?? 0, first, workspace);
    // A killed process may not have ended yet.
    const survivor = agentServersUnder(place.root).find(({ pid }) => pid !== record.pid);
    if (survivor !== undefined) revivals += 1;

    if (round === 0) await oratorioJson(place, 'list');
    const second = round === 0 ? runningHub(place) : await startHub(place);
    t.not(second.pid, first.pid, 'another Hub serves');
    const found = await second.client.byWorkspace(workspace);
    const again = found.state === 'running' ? found : await second.client.ensure({ workspacePath: workspace });
    if (again.adopted) adoptions += 1;
    t.ok(again.pid !== record.pid && isAlive(again.pid ?? 0));
    const now = takeInventory(place);
    for (const socket of now.sockets) everListened.add(socket);
    t.same(
      [now.processes.length, now.sockets.length, mutexes(now).length],
      [2, 3, 2],
      `round ${round}: each thing once`,
    );
    running = round % 2 === 1 && round < rounds - 1 ? second : undefined;
    if (running !== undefined) continue;
    if (round % 2 === 0) await second.client.stop(workspace);
    await second.shutdown();
    t.notOk(isAlive(again.pid ?? 0));
  }
  t.ok(revivals > 0 && revivals < rounds, `the Hub died before and after the revival (${revivals} of ${rounds} after)`);
  t.ok(adoptions > 0, `${adoptions} adopted`);
  watch.stop();
  t.same(watch.duplicates, []);

  const after = takeInventory(place);
  // Holds the earlier tokens of open pages; written from the second start on.
  const earlier = (file: string) => file.endsWith('/dashboard.earlier.json');
  t.equal(after.files.filter(earlier).length, 1);
  t.same(
    { ...after, files: after.files.filter((file) => !earlier(file)) },
    before,
    'the same processes, sockets, locks and files as before: none, none, none, and those that stay',
  );
  const stillListening = listeningSockets();
  t.same(
    [...everListened].filter((socket) => stillListening.has(socket.split(' ')[1] ?? '')),
    [],
    'no other process has inherited a socket',
  );
});

t.test(
  'a chat follows its turn over the death of the agent server, and a client of the dead server fails',
  async (t) => {
    const place = makePlace(t);
    const workspace = place.workspace('site', quick);
    const { pid } = await oratorioJson(place, 'ensure', workspace);
    const chat = await oratorio(place, ['chat', 'count to 1000', '--workspace', workspace], (text) => {
      if (/\b7\b/.test(text) && isAlive(pid)) process.kill(pid, 'SIGKILL');
    });
    t.match(chat, { code: 0, signal: null, stdout: /\b1000\b/, stderr: /this turn goes on/ });
    t.match(await oratorio(place, ['chat', 'hello', '--workspace', workspace]), { code: 0, stdout: /Demo model/ });

    const record = await oratorioJson(place, 'ensure', workspace);
    const client = await AppServerClient.connect(record.endpoints.appServerWebSocket);
    const answer = answerOf(await say(client, workspace, 'count to 1000'));
    const hub = runningHub(place);
    const events = await followEvents(t, hub.client);
    process.kill(record.pid, 'SIGKILL');
    await t.rejects(answer, { name: 'AppServerConnectionError' });
    await t.rejects(
      client.request('thread/list'),
      { name: 'AppServerConnectionError' },
      'later requests are rejected too',
    );
    const revived = await events.wait('appserver.running');
    const url = (revived.data['endpoints'] as Record<string, string>)['appServerWebSocket'] ?? '';
    t.match(await ask(url, workspace, 'echo back again'), 'back again');
    await hub.shutdown();
    await untilNoneRuns(place);
  },
);
