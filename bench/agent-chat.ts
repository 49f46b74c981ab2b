import { type ChatFigures, type ChatLoad, loadChat } from './chat-load.ts';
import { allChatServers, type ChatServer, directUpstream, names } from './chat-servers.ts';
import {
  type Benchmark,
  type Cell,
  type Context,
  interleaved,
  median,
  type Result,
  rssKiB,
  startPeer,
  type Table,
  wait,
} from './harness.ts';
import { nodePeer } from './servers.ts';

type Load = Omit<ChatLoad, 'upstreamPid'>;
type Rounds = ReadonlyMap<ChatServer, readonly (readonly ChatFigures[])[]>;

/** Several loads on each of several servers, round after round. */
interface Section {
  readonly servers: readonly ChatServer[];
  readonly loads: readonly Load[];
  readonly rounds: Rounds;
}

const atOnce = { whole: [1, 16, 32, 128], streams: [1, 100, 500], first: [1, 16, 128] } as const;

const wholeLoads = (quick: boolean): Load[] =>
  atOnce.whole.map((connections) => ({
    ...{ model: 'instant', isStream: false, connections },
    ...{ warmMs: 150, measureMs: quick ? 400 : 600 },
  }));

const streamLoads = (quick: boolean): Load[] =>
  atOnce.streams.map((connections) => ({
    ...{ model: 'burst', isStream: true, connections },
    // Long enough for every one of the streams to have been through.
    ...{ warmMs: connections === 500 ? 1_500 : 300, measureMs: quick ? 800 : 1_200 },
  }));

const pacedModels = { 1: 'brief', 16: 'short', 128: 'paced' } as const;

const firstLoads = (quick: boolean): Load[] =>
  atOnce.first.map((connections) => ({
    ...{ model: pacedModels[connections], isStream: true, connections },
    ...{ warmMs: 200, measureMs: quick ? 1_200 : 2_000 },
  }));

async function compare(
  servers: readonly ChatServer[],
  loads: readonly Load[],
  rounds: number,
  upstreamPid: number,
): Promise<Section> {
  const found = await interleaved(servers, rounds, async (server) => {
    const figures: ChatFigures[] = [];
    for (const load of loads) figures.push(await loadChat(server, { ...load, upstreamPid }));
    return figures;
  });
  return { servers, loads, rounds: found };
}

/** The median of `of` over the rounds; `of` sees the figures of a server and those of another in the same round. */
function over(
  { rounds, loads }: Section,
  server: ChatServer | undefined,
  connections: number,
  of: (own: ChatFigures, other: ChatFigures) => number,
  other: ChatServer | undefined = server,
): number {
  const index = loads.findIndex((load) => load.connections === connections);
  const figures = (which: ChatServer | undefined) => (which && rounds.get(which)) ?? [];
  return median(
    figures(server).flatMap((own, round) => {
      const [mine, theirs] = [own[index], figures(other)[round]?.[index]];
      return mine && theirs ? [of(mine, theirs)] : [];
    }),
  );
}

const named = ({ servers }: Section, name: string): ChatServer | undefined =>
  servers.find((server) => server.name === name);

function wholeTable(section: Section): Table {
  const direct = named(section, names.direct);
  const added = (key: 'p50Ms' | 'p99Ms', server: ChatServer, connections: number): Cell =>
    server === direct ? '–' : over(section, server, connections, (own, other) => own[key] - other[key], direct);
  return {
    title: 'Answers as a whole: requests per second, and milliseconds more than the upstream alone',
    columns: [
      'server',
      ...['requests/s at 32', 'CPU µs', 'p50 at 1', 'p99 at 1'],
      ...['p50 at 16', 'p99 at 16', 'p50 at 128', 'p99 at 128', 'core of client and upstream'],
    ],
    rows: section.servers.map((server) => [
      server.name,
      over(section, server, 32, (own) => own.answersPerSecond),
      over(section, server, 32, (own) => own.cpuUsPerAnswer),
      ...[1, 16, 128].flatMap((connections) => [
        added('p50Ms', server, connections),
        added('p99Ms', server, connections),
      ]),
      over(section, server, 32, (own) => own.besideLoad),
    ]),
  };
}

function streamTable(section: Section): Table {
  const limit = named(section, names.limit);
  return {
    title: 'Streams of 200 chunks as fast as they come: chunks per second',
    columns: [
      'server',
      ...atOnce.streams.map((connections) => `at ${connections}`),
      'at 500: × limit',
      'CPU ms per 1 000 chunks at 500',
      'CPU × limit',
      'peak MiB',
      'core of client and upstream',
    ],
    rows: section.servers.map((server) => [
      server.name,
      ...atOnce.streams.map((connections) => over(section, server, connections, (own) => own.chunksPerSecond)),
      over(section, server, 500, (own, other) => own.chunksPerSecond / other.chunksPerSecond, limit),
      over(section, server, 500, (own) => own.cpuMsPer1000Chunks),
      over(section, server, 500, (own, other) => own.cpuMsPer1000Chunks / other.cpuMsPer1000Chunks, limit),
      over(section, server, 500, (own) => own.peakRssMiB),
      over(section, server, 500, (own) => own.besideLoad),
    ]),
  };
}

const addedFirst = (section: Section, key: 'firstP50Ms' | 'firstP99Ms', server: ChatServer | undefined, at: number) =>
  over(section, server, at, (own, other) => own[key] - other[key], named(section, names.limit));

function firstTable(section: Section): Table {
  const limit = named(section, names.limit);
  return {
    title: 'Time to the first chunk while others stream at a steady pace, milliseconds',
    columns: [
      'server',
      ...atOnce.first.flatMap((connections) => [`p50 at ${connections}`, `p99 at ${connections}`]),
      ...['added p50 at 128', 'added p99 at 128', 'CPU ms per 1 000 chunks at 128'],
    ],
    rows: section.servers.map((server) => [
      server.name,
      ...atOnce.first.flatMap((connections) => [
        over(section, server, connections, (own) => own.firstP50Ms),
        over(section, server, connections, (own) => own.firstP99Ms),
      ]),
      ...(server === limit
        ? ['–', '–']
        : [addedFirst(section, 'firstP50Ms', server, 128), addedFirst(section, 'firstP99Ms', server, 128)]),
      over(section, server, 128, (own) => own.cpuMsPer1000Chunks),
    ]),
  };
}

/** Time until the compiler has seen the measured code; the same for every server. */
async function warmUp(servers: readonly ChatServer[], upstreamPid: number, quick: boolean): Promise<void> {
  for (const server of servers) {
    const load = { connections: 32, measureMs: 100, upstreamPid };
    await loadChat(server, { ...load, warmMs: quick ? 3_000 : 7_000, model: 'instant', isStream: false });
    if (server.streams) await loadChat(server, { ...load, warmMs: 2_000, model: 'burst', isStream: true });
  }
}

async function memoryTable(servers: readonly ChatServer[]): Promise<Table> {
  await wait(2_000);
  return {
    title: 'Start and memory',
    columns: ['server', 'from spawn to its first answer, ms', 'resident after all of this, MiB'],
    rows: servers.map((server) => [server.name, server.readyMs, rssKiB(server.pid) / 1024]),
  };
}

async function run({ quick, rounds }: Context): Promise<Result> {
  const upstream = await startPeer({ ...nodePeer('mock-upstream.ts'), core: 1 });
  const direct = directUpstream(upstream);
  const servers = await allChatServers(`http://127.0.0.1:${upstream.port}`);
  try {
    await warmUp(servers, upstream.pid, quick);
    const streaming = servers.filter(({ streams }) => streams);
    const whole = await compare([direct, ...servers], wholeLoads(quick), rounds, upstream.pid);
    const streams = await compare(streaming, streamLoads(quick), rounds, upstream.pid);
    const first = await compare(streaming, firstLoads(quick), rounds, upstream.pid);
    const ours = named(whole, names.ours);
    const times = (section: Section, name: string, at: number, key: 'answersPerSecond' | 'chunksPerSecond') =>
      over(section, ours, at, (own, other) => own[key] / other[key], named(section, name));
    return {
      tables: [wholeTable(whole), streamTable(streams), firstTable(first), await memoryTable(servers)],
      checks: [
        {
          what: '500 streams, × the limit',
          measured: times(streams, names.limit, 500, 'chunksPerSecond'),
          atLeast: 0.6,
        },
        {
          what: `500 streams, × ${names.sdk}`,
          measured: times(streams, names.sdk, 500, 'chunksPerSecond'),
          atLeast: 3,
        },
        {
          what: 'first chunk over the limit, p50 at 128',
          measured: addedFirst(first, 'firstP50Ms', ours, 128),
          atMost: 2,
          unit: ' ms',
        },
        {
          what: 'first chunk over the limit, p99 at 128',
          measured: addedFirst(first, 'firstP99Ms', ours, 128),
          atMost: 10,
          unit: ' ms',
        },
        {
          what: `32 requests at once, × ${names.portkey}`,
          measured: times(whole, names.portkey, 32, 'answersPerSecond'),
          atLeast: 2,
        },
      ],
    };
  } finally {
    for (const server of servers) await server.stop();
    await upstream.stop();
  }
}

export const agentChat: Benchmark = { name: 'agent-chat', title: 'Chat completions through the agent server', run };
