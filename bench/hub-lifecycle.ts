import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { compileCacheDirectory } from '../src/hub/compile-cache.ts';
import { PortAllocator } from '../src/supervise/index.ts';
import { startAgentServer } from './agent-server.ts';
import {
  type Benchmark,
  type Context,
  cpuMs,
  median,
  pssKiB,
  quantile,
  type Result,
  rssKiB,
  type StartOptions,
  startPeer,
  type Table,
  timed,
  wait,
} from './harness.ts';
import { ensure, type Hub, makePlace, type Place, startHub } from './hub.ts';
import { nodePeer } from './servers.ts';

const mib = (kib: number): number => kib / 1024;

async function withHub<T>(work: (hub: Hub, place: Place) => Promise<T>): Promise<T> {
  const place = makePlace();
  try {
    const hub = await startHub(place);
    try {
      return await work(hub, place);
    } finally {
      await hub.stop();
    }
  } finally {
    place.remove();
  }
}

const get = (port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port, agent: false }, (response) => response.resume().once('end', resolve))
      .once('error', reject)
      .end();
  });

/** Spawn to first answer of the least Node process, unpinned like the agent servers. */
async function bareStart(): Promise<number> {
  const { command, args }: StartOptions = nodePeer('minimal-node.mjs');
  const from = performance.now();
  const peer = await startPeer({ command, args });
  await get(peer.port);
  const elapsed = performance.now() - from;
  await peer.stop();
  return elapsed;
}

/** Time in which an agent server loads the code of turns, and stores all of its compiled code. */
const codeIsStoredMs = 5_000;

/** Milliseconds of one turn: the bare process, the agent server without a Hub, the cold ensure. */
interface Cold {
  readonly bare: number;
  readonly alone: number;
  readonly ensure: number;
}

/** An agent server without a Hub, with the compiled code that those of Hubs have left. */
async function startAlone(): Promise<number> {
  const server = await startAgentServer({ config: {}, compileCache: compileCacheDirectory(process.env) });
  await server.stop();
  return server.readyMs;
}

/** Each workspace is new, and stopped again outside the measurement. */
function coldEnsure(count: number): Promise<Cold[]> {
  return withHub(async (hub, place) => {
    const turns: Cold[] = [];
    for (let index = -1; index < count; index += 1) {
      const workspacePath = place.workspace(`cold-${index}`);
      const bare = await bareStart();
      const alone = await startAlone();
      const cold = await timed(() => ensure(hub, workspacePath));
      // The first turn fills the cache of the file system; its server stores the compiled code, some time after its start.
      if (index < 0) await pause(codeIsStoredMs);
      await hub.request('POST', '/v1/appservers/stop', { workspacePath });
      if (index >= 0) turns.push({ bare, alone, ensure: cold });
    }
    return turns;
  });
}

/** Processes the Hub has started and that live. */
function children(pid: number): number[] {
  return readdirSync(`/proc/${pid}/task`).flatMap((task) =>
    readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
  );
}

interface Crowd {
  readonly asked: number;
  readonly running: number;
  readonly processes: number;
  readonly distinct: number;
  readonly failures: readonly string[];
  readonly seconds: number;
}

/** All at once. */
async function ensureMany(hub: Hub, place: Place, count: number): Promise<Crowd> {
  const paths = Array.from({ length: count }, (_, index) => place.workspace(`many-${index}`));
  const from = performance.now();
  const results = await Promise.allSettled(paths.map((path) => ensure(hub, path)));
  const seconds = (performance.now() - from) / 1000;
  const pids = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
  const failures = results.flatMap((result) => (result.status === 'rejected' ? [String(result.reason)] : []));
  return {
    asked: count,
    running: pids.length,
    processes: children(hub.pid).length,
    distinct: new Set(pids).size,
    failures,
    seconds,
  };
}

interface Idle {
  readonly hubRssMiB: number;
  readonly hubCpuPercent: number;
  readonly serverRssMiB: number;
  readonly serverPssMiB: number;
}

/** V8 collects the garbage of a start in an idle process, some ten seconds later. */
const settleMs = 20_000;

/** A Hub that does nothing but supervise `count` running agent servers, for longer than the pause between two reports of their health. */
function idle(count: number, seconds: number): Promise<Idle> {
  return withHub(async (hub, place) => {
    const crowd = await ensureMany(hub, place, count);
    if (crowd.failures.length > 0) throw new Error(crowd.failures[0]);
    await wait(settleMs);
    const servers = children(hub.pid).slice(0, 20);
    const before = cpuMs(hub.pid);
    const elapsed = await timed(() => wait(seconds * 1000));
    return {
      hubCpuPercent: ((cpuMs(hub.pid) - before) / elapsed) * 100,
      hubRssMiB: mib(rssKiB(hub.pid)),
      serverRssMiB: mib(median(servers.map(rssKiB))),
      serverPssMiB: mib(median(servers.map(pssKiB))),
    };
  });
}

/** Writes the state that an earlier Hub leaves of workspaces at rest. @param more further fields of each */
export function leaveKnown(place: Pick<Place, 'home' | 'workspace'>, each: readonly object[]): string[] {
  const appServers = each.map((more, index) => {
    const path = place.workspace(`known-${index}`);
    const at = new Date().toISOString();
    const history = { exitCode: 0, lastError: null, lastStartedAt: at, lastExitedAt: at };
    return { workspacePath: path, canonicalWorkspacePath: path, server: null, proxy: null, ...history, ...more };
  });
  const directory = join(place.home, 'hub');
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const content = { version: 1, updatedAt: new Date().toISOString(), appServers };
  writeFileSync(join(directory, 'appservers.json'), JSON.stringify(content), { mode: 0o600 });
  return appServers.map(({ workspacePath }) => workspacePath);
}

interface Sleepers {
  readonly asleep: number;
  readonly hubRssMiB: number;
  readonly serversPssMiB: number;
  /** Milliseconds of the chat that wakes each workspace, and of the next one. */
  readonly wakingMs: readonly number[];
  readonly chatMs: readonly number[];
  readonly lost: number;
}

/** One chat request, to the end of its answer. Resolves with the status; 0: no answer. */
const chat = (port: number): Promise<number> =>
  new Promise((resolve) => {
    const headers = { 'content-type': 'application/json', connection: 'close' };
    request(
      { host: '127.0.0.1', port, agent: false, method: 'POST', path: '/v1/chat/completions', headers },
      (answer) => answer.resume().once('close', () => resolve(answer.complete ? (answer.statusCode ?? 0) : 0)),
    )
      .once('error', () => resolve(0))
      .end(JSON.stringify({ model: 'demo', messages: [{ role: 'user', content: 'say hello' }] }));
  });

/** Most workspaces sleep, some are awake; then one chat wakes each. A workspace is stopped again outside of the measurement. */
async function sleepers(asleep: number, awake: number): Promise<Sleepers> {
  const place = makePlace();
  try {
    mkdirSync(place.home, { recursive: true, mode: 0o700 });
    writeFileSync(join(place.home, 'config.json'), JSON.stringify({ Provider: 'demo', Api: { Enabled: true } }));
    const ports = new PortAllocator();
    const apis: number[] = [];
    for (let index = 0; index < asleep; index += 1) apis.push(await ports.allocate());
    const paths = leaveKnown(
      place,
      apis.map((api) => ({ asleep: { api } })),
    );
    const hub = await startHub(place);
    const crowd = await ensureMany(hub, place, awake);
    if (crowd.failures.length > 0) throw new Error(crowd.failures[0]);
    await wait(5_000);
    const found = JSON.parse((await hub.request('GET', '/v1/status')).text).asleep;
    const serversPssMiB = mib(children(hub.pid).reduce((sum, pid) => sum + pssKiB(pid), 0));
    const hubRssMiB = mib(rssKiB(hub.pid));
    const statuses: number[] = [];
    const wakingMs: number[] = [];
    const chatMs: number[] = [];
    for (const [index, port] of apis.entries()) {
      wakingMs.push(await timed(async () => statuses.push(await chat(port))));
      chatMs.push(await timed(async () => statuses.push(await chat(port))));
      await hub.request('POST', '/v1/appservers/stop', { workspacePath: paths[index] });
    }
    await hub.stop();
    const lost = statuses.filter((status) => status !== 200).length;
    return { asleep: found, hubRssMiB, serversPssMiB, wakingMs, chatMs, lost };
  } finally {
    place.remove();
  }
}

/** Start time and resident memory of a Hub that knows `known` workspaces. */
async function start(known: number): Promise<{ startMs: number; rssKiB: number }> {
  const place = makePlace();
  try {
    if (known > 0) leaveKnown(place, Array<object>(known).fill({}));
    const hub = await startHub(place);
    if (known > 0) {
      const { text } = await hub.request('GET', '/v1/appservers');
      const found = JSON.parse(text).length;
      if (found !== known) throw new Error(`the Hub knows ${found} workspaces, not ${known}`);
    }
    await wait(1_500);
    const figures = { startMs: hub.startMs, rssKiB: rssKiB(hub.pid) };
    await hub.stop();
    return figures;
  } finally {
    place.remove();
  }
}

/** Counts of two Hubs that both hold many: their difference leaves out the costs that each has once. */
const knownCounts = (quick: boolean): readonly [number, number] => (quick ? [200, 800] : [1_000, 4_000]);

async function starts({ quick, rounds }: Context) {
  const plain = [];
  const costs: number[] = [];
  for (let round = 0; round < Math.max(rounds, quick ? 3 : 5); round += 1) plain.push(await start(0));
  const [small, large] = knownCounts(quick);
  for (let round = 0; round < (quick ? 1 : 3); round += 1) {
    const few = await start(small);
    const many = await start(large);
    costs.push((many.rssKiB - few.rssKiB) / (large - small));
  }
  return {
    startMs: median(plain.map(({ startMs }) => startMs)),
    rssMiB: mib(median(plain.map((figures) => figures.rssKiB))),
    kibPerKnown: median(costs),
  };
}

async function run(context: Context): Promise<Result> {
  const { quick } = context;
  const started = await starts(context);
  const colds = await coldEnsure(quick ? 5 : 15);
  const ratio = median(colds.map(({ ensure, bare }) => ensure / bare));
  const resting = await idle(quick ? 20 : 100, quick ? 3 : 30);
  const crowd = await withHub((hub, place) => ensureMany(hub, place, quick ? 20 : 200));
  const [sleeping, awake] = quick ? [18, 2] : [450, 50];
  const slept = await sleepers(sleeping, awake);
  const wakingMs = slept.wakingMs.map((ms, index) => ms - (slept.chatMs[index] ?? 0));
  const table: Table = {
    title: 'Life of Hub and agent servers',
    columns: ['', 'median'],
    rows: [
      ['Hub, from spawn to the first answer of GET /v1/status, ms', started.startMs],
      ['Hub, resident after start, MiB', started.rssMiB],
      ['Hub, resident per known workspace at rest, KiB', started.kibPerKnown],
      [
        `cold ensure, from request to running record, ms (${colds.length} times)`,
        median(colds.map(({ ensure }) => ensure)),
      ],
      ['of it: a bare Node process, from spawn to first answer, ms', median(colds.map(({ bare }) => bare))],
      ['of it: added by the agent server, without a Hub, ms', median(colds.map(({ alone, bare }) => alone - bare))],
      ['of it: added by the Hub, ms', median(colds.map(({ ensure, alone }) => ensure - alone))],
      ['cold ensure ÷ bare Node process', ratio],
      [`Hub with ${quick ? 20 : 100} running workspaces, resident, MiB`, resting.hubRssMiB],
      [`Hub with ${quick ? 20 : 100} running workspaces, CPU, % of a core`, resting.hubCpuPercent],
      ['agent server, idle, resident, MiB', resting.serverRssMiB],
      ['agent server, idle, proportional share (PSS), MiB', resting.serverPssMiB],
      [`${crowd.asked} workspaces ensured at once: seconds`, crowd.seconds],
      [`${crowd.asked} workspaces ensured at once: running`, crowd.running],
      [`${crowd.asked} workspaces ensured at once: processes`, crowd.processes],
      [`${sleeping} workspaces asleep, ${awake} awake: Hub, resident, MiB`, slept.hubRssMiB],
      [`${sleeping} workspaces asleep, ${awake} awake: agent servers, PSS, MiB`, slept.serversPssMiB],
      ['chat that wakes a workspace, to the end of its answer, ms', median(slept.wakingMs)],
      ['chat that wakes a workspace, the slowest of a hundred, ms', quantile(slept.wakingMs, 0.99)],
      ['of it: added by the waking, ms', median(wakingMs)],
      ['requests lost while each workspace was woken', slept.lost],
    ],
  };
  return {
    tables: [table],
    notes: crowd.failures.slice(0, 3),
    checks: [
      { what: 'cold ensure ÷ start of a bare Node process', measured: ratio, atMost: 1.9 },
      { what: 'agent server resident, idle', measured: resting.serverRssMiB, atMost: 90, unit: ' MiB' },
      { what: `of ${crowd.asked} workspaces ensured at once, running`, measured: crowd.running, atLeast: crowd.asked },
      { what: 'distinct agent servers among them', measured: crowd.distinct, atLeast: crowd.asked },
      { what: 'processes started for them', measured: crowd.processes, atMost: crowd.asked },
      { what: 'Hub start to first status', measured: started.startMs, atMost: 250, unit: ' ms' },
      { what: 'asleep', measured: slept.asleep, atLeast: sleeping },
      { what: 'requests lost while each workspace was woken', measured: slept.lost, atMost: 0 },
      { what: 'added by the waking', measured: median(wakingMs), atMost: 150, unit: ' ms' },
      {
        what: `Hub resident with ${quick ? 20 : 100} running workspaces`,
        measured: resting.hubRssMiB,
        atMost: 90,
        unit: ' MiB',
      },
      {
        what: `Hub CPU with ${quick ? 20 : 100} running workspaces`,
        measured: resting.hubCpuPercent,
        atMost: 0.5,
        unit: ' %',
      },
    ],
  };
}

export const hubLifecycle: Benchmark = { name: 'hub-lifecycle', title: 'Life of the Hub', run };
