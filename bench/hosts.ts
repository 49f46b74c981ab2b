import { mkdirSync } from 'node:fs';
import { type BuiltHub, oratorioJson, runningHub, startHub as startBuilt, type Teardown } from '../test/e2e/harness.ts';
import { type Machines, makeMachines } from '../test/e2e/ssh-machine.ts';
import { type Benchmark, type Context, median, type Result, type Table, timed, until } from './harness.ts';
import { crowdOfHosts, type HostCrowd } from './host-crowd.ts';
import { type EventFigures, eventLatency, type Ways, waysOf } from './host-latency.ts';
import { addHost, isConnected, stateOf } from './host-state.ts';
import { leaveKnown } from './hub-lifecycle.ts';
import { type PlainHub, plainHubs } from './plain-hub.ts';

const hostName = 'build';
const attemptMs = 60_000;
const knownWorkspaces = 50;
const cutMs = 20_000;

/** Teardowns of the harness of the tests, run in reverse. */
async function withTeardowns<T>(work: (t: Teardown) => Promise<T>): Promise<T> {
  const teardowns: (() => unknown)[] = [];
  try {
    return await work({ teardown: (undo) => void teardowns.push(undo) });
  } finally {
    for (const undo of teardowns.reverse()) await undo();
  }
}

/** Log level of a user: the tests log more. */
const env = { ORATORIO_LOG: 'info' };

async function makeQuietMachines(t: Teardown, { apart = false } = {}): Promise<Machines> {
  const machines = await makeMachines(t, { apart, env });
  return { ...machines, here: { ...machines.here, env: { ...machines.here.env, ...env } } };
}

const act = (hub: BuiltHub, action: string) => hub.call('POST', `/v1/hosts/${hostName}/${action}`, {});

interface Attempts {
  readonly attachMs: readonly number[];
  readonly killedSshMs: readonly number[];
  readonly killedHubMs: readonly number[];
}

/** Connections from the beginning, after a kill of `ssh`, and after a kill of the remote Hub. */
async function attempts(hub: BuiltHub, machines: Machines, count: number): Promise<Attempts> {
  const found: { attachMs: number[]; killedSshMs: number[]; killedHubMs: number[] } = {
    ...{ attachMs: [], killedSshMs: [], killedHubMs: [] },
  };
  for (let each = 0; each < count; each += 1) {
    await act(hub, 'disable');
    found.attachMs.push(await timed(async () => (await act(hub, 'enable')) && isConnected(hub, hostName)));
    const [ssh = 0] = machines.sshProcesses();
    found.killedSshMs.push(
      await timed(async () => {
        process.kill(ssh, 'SIGKILL');
        await until(
          'the loss is noticed',
          attemptMs,
          2,
          async () => (await stateOf(hub, hostName)) !== 'connected' || undefined,
        );
        await isConnected(hub, hostName);
      }),
    );
    const remote = runningHub(machines.there);
    found.killedHubMs.push(
      await timed(async () => {
        await remote.kill('SIGKILL');
        await until(
          'the loss is noticed',
          attemptMs,
          2,
          async () => (await stateOf(hub, hostName)) !== 'connected' || undefined,
        );
        await isConnected(hub, hostName);
      }),
    );
  }
  return found;
}

interface Cut {
  readonly noticedMs: number;
  readonly backMs: number;
}

/** A line that drops packets for 20 s, between two networks: time until it is noticed, and from its repair to the connection. */
const cuts = (count: number): Promise<readonly Cut[]> =>
  withTeardowns(async (t) => {
    const machines = await makeQuietMachines(t, { apart: true });
    if (!machines.isApart) return [];
    const hub = await startBuilt(machines.here);
    await addHost(hub, machines, hostName);
    const found: Cut[] = [];
    for (let each = 0; each < count; each += 1) {
      await machines.cutLine();
      const from = performance.now();
      await until(
        'the cut is noticed',
        cutMs,
        10,
        async () => (await stateOf(hub, hostName)) !== 'connected' || undefined,
      );
      const noticedMs = performance.now() - from;
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, cutMs - noticedMs)));
      await machines.mendLine();
      found.push({ noticedMs, backMs: await timed(() => isConnected(hub, hostName)) });
    }
    await hub.shutdown();
    return found;
  });

interface Figures extends Attempts {
  readonly ways: Ways;
  readonly events: EventFigures;
  readonly crowd: HostCrowd;
}

const measure = ({ quick, rounds }: Context): Promise<Figures> =>
  withTeardowns(async (t) => {
    const machines = await makeQuietMachines(t);
    const { here, there } = machines;
    leaveKnown(there, Array<object>(knownWorkspaces - 1).fill({}));
    mkdirSync(here.home, { recursive: true, mode: 0o700 });
    const hub = await startBuilt(here);
    await addHost(hub, machines, hostName);
    await oratorioJson(here, 'up', `${hostName}:${there.workspace('site')}`);
    const ways = await waysOf(hub, runningHub(there), { rounds, measureMs: quick ? 500 : 1_000, host: hostName });
    const events = await eventLatency(hub, runningHub(there), quick ? 50 : 300);
    const tried = await attempts(hub, machines, quick ? 2 : rounds);
    await act(hub, 'remove');
    const crowd = await crowdOfHosts(hub, machines, {
      hosts: quick ? 3 : 20,
      idleMs: quick ? 5_000 : 20_000,
      remote: () => runningHub(there),
    });
    await hub.shutdown();
    await runningHub(there).shutdown();
    return { ...tried, ways, events, crowd };
  });

function tablesOf(figures: Figures, cut: readonly Cut[], plain: readonly PlainHub[]): Table[] {
  const { ways, events, crowd, attachMs, killedSshMs, killedHubMs } = figures;
  return [
    {
      title: 'Requests at the Hub of another machine: asked there, and through this Hub and ssh',
      columns: ['', 'there, p50 ms', 'through the host, p50 ms', 'added ms', 'through ÷ there'],
      rows: [
        ...ways.map(({ name, directMs, hostMs, addedMs, ratio }) => [name, directMs, hostMs, addedMs, ratio]),
        ['event, from its cause to a subscriber', events.directMs, events.hostMs, events.addedMs, events.ratio],
      ],
    },
    {
      title: 'Connections',
      columns: ['', 'median ms'],
      rows: [
        ['connect a host: ssh, address, proof, list', median(attachMs)],
        ['connected again after a kill of ssh', median(killedSshMs)],
        ['connected again after a kill of the remote Hub, which is started again', median(killedHubMs)],
        ['a line that drops packets, until it is noticed', median(cut.map(({ noticedMs }) => noticedMs))],
        ['connected again after the repair of a line that was cut for 20 s', median(cut.map(({ backMs }) => backMs))],
      ],
    },
    {
      title: `A Hub with ${crowd.hosts} hosts of ${knownWorkspaces} workspaces each`,
      columns: ['', 'for each host'],
      rows: [
        ['memory of the Hub, resident, MiB', crowd.hubMiB],
        ['memory of its ssh, proportional share (PSS), MiB', crowd.sshMiB],
        ['CPU of Hub and ssh while nothing happens, % of a core', crowd.idlePercent],
        [
          `CPU of the Hub at ${Math.round(crowd.eventsPerSecond)} events a second in all, % of a core`,
          crowd.busyPercent,
        ],
      ],
    },
    {
      title: 'A Hub without hosts and without containers, one running workspace',
      columns: [
        'build',
        'start ms',
        'resident MiB',
        'GET /v1/status p50 ms',
        'GET /v1/appservers p50 ms',
        'idle CPU %',
      ],
      rows: plain.map((hub) => [hub.build, hub.startMs, hub.residentMiB, hub.statusMs, hub.listMs, hub.idlePercent]),
    },
  ];
}

async function run(context: Context): Promise<Result> {
  const figures = await measure(context);
  const cut = await cuts(context.quick ? 1 : 2);
  const plain = await plainHubs(context);
  const { crowd, ways, events, attachMs } = figures;
  const page = ways.find(({ name }) => name.includes('page'))?.addedMs ?? Number.NaN;
  const [ours, other] = plain;
  return {
    tables: tablesOf(figures, cut, plain),
    checks: [
      { what: 'connect a host', measured: median(attachMs), atMost: 2_000, unit: ' ms' },
      { what: 'data of a page beyond a request there, p50', measured: page, atMost: 1, unit: ' ms' },
      { what: 'event beyond a subscriber there, p50', measured: events.addedMs, atMost: 1, unit: ' ms' },
      { what: 'memory of a host with its ssh', measured: crowd.hubMiB + crowd.sshMiB, atMost: 10, unit: ' MiB' },
      { what: 'CPU of an idle host with its ssh', measured: crowd.idlePercent, atMost: 0.1, unit: ' %' },
      {
        what: `CPU of a Hub with ${crowd.hosts} hosts and events`,
        measured: crowd.busyPercent * crowd.hosts,
        atMost: 5,
        unit: ' %',
      },
      ...(cut.length > 0
        ? [
            {
              what: 'a cut line is noticed within',
              measured: Math.max(...cut.map(({ noticedMs }) => noticedMs)) / 1_000,
              atMost: 20,
              unit: ' s',
            },
          ]
        : []),
      ...(ours && other
        ? (
            [
              ['start', 'startMs'],
              ['memory', 'residentMiB'],
              ['GET /v1/status', 'statusMs'],
              ['GET /v1/appservers', 'listMs'],
            ] as const
          ).map(([what, key]) => ({
            what: `Hub without hosts, ${what}, × ${other.build}`,
            measured: ours[key] / other[key],
            atMost: 1.1,
          }))
        : []),
    ],
    notes: [
      'Both machines are this machine, with a real sshd. Only the cut line is between two networks.',
      'All hosts of the crowd are one machine under several names, each with an ssh of its own.',
      ...(other ? ['The other build is the last commit before containers and hosts.'] : []),
    ],
  };
}

export const hosts: Benchmark = { name: 'hosts', title: 'Hubs of other machines', run };
