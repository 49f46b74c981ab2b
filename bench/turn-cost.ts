import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type AgentServer, startAgentServer } from './agent-server.ts';
import { type Benchmark, type Check, type Context, median, type Peer, type Result, startPeer } from './harness.ts';
import { mockAnswers, textOf } from './peers/mock-answers.ts';
import { RpcClient } from './rpc-client.ts';
import { nodePeer } from './servers.ts';

/** Concurrent threads, and turns per round. */
const loads = [
  { threads: 1, turns: 60 },
  { threads: 16, turns: 160 },
  { threads: 64, turns: 256 },
] as const;
const turnsPerThread = 10;
/** Turns of a busy day, for the sum of written bytes. */
const turnsPerDay = 300;

interface Server {
  readonly name: string;
  readonly server: AgentServer;
  readonly client: RpcClient;
}

/** Cost of a turn. */
interface Cost {
  readonly cpuUs: number;
  readonly firstMs: number;
  readonly bytes: number;
  readonly writes: number;
}

/** Processor time of all threads of a process, in nanoseconds. */
const cpuNs = (pid: number): number =>
  readdirSync(`/proc/${pid}/task`).reduce(
    (sum, task) => sum + Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ')[0]),
    0,
  );

function io(pid: number, key: 'write_bytes' | 'syscw'): number {
  const match = new RegExp(`^${key}: (\\d+)$`, 'm').exec(readFileSync(`/proc/${pid}/io`, 'utf8'));
  return Number(match?.[1] ?? Number.NaN);
}

/** Runs turns and returns the time to the first piece of each, in milliseconds. */
async function runTurns(client: RpcClient, threads: number, turns: number): Promise<readonly number[]> {
  const firsts: number[] = [];
  let left = turns;
  const work = async (): Promise<void> => {
    while (left > 0) {
      const threadId = await client.startThread({ model: 'instant' });
      for (let count = 0; count < turnsPerThread && left > 0; count += 1) {
        left -= 1;
        const { status, text, deltas, firstDeltaMs } = await client.turn(threadId, 'What do you do?');
        if (status !== 'completed' || text !== textOf('instant') || deltas !== mockAnswers.instant.chunks) {
          throw new Error(`incomplete turn: ${status}, ${deltas} deltas, ${text}`);
        }
        firsts.push(firstDeltaMs);
      }
    }
  };
  await Promise.all(Array.from({ length: threads }, work));
  return firsts;
}

async function measured({ server: { pid }, client }: Server, { threads, turns }: (typeof loads)[number]) {
  const before = { cpu: cpuNs(pid), bytes: io(pid, 'write_bytes'), writes: io(pid, 'syscw') };
  const firsts = await runTurns(client, threads, turns);
  return {
    cpuUs: (cpuNs(pid) - before.cpu) / 1_000 / turns,
    firstMs: median(firsts),
    bytes: (io(pid, 'write_bytes') - before.bytes) / turns,
    writes: (io(pid, 'syscw') - before.writes) / turns,
  };
}

async function open(name: string, upstream: Peer, root: string | undefined): Promise<Server> {
  const config = { EndPoint: `http://127.0.0.1:${upstream.port}/v1`, ApiKey: 'bench', Model: 'instant' };
  const program = root === undefined ? undefined : join(root, 'dist', 'appserver', 'main.cjs');
  const server = await startAgentServer({ config, core: 0, program });
  return { name, server, client: await RpcClient.open(server.url) };
}

/** Names of the builds. */
const names = { ours: 'this build', other: 'the other build' } as const;

/** Rounds of one load on each server. */
type Rounds = ReadonlyMap<string, readonly Cost[]>;

const over = (rounds: Rounds, name: string, key: keyof Cost): number =>
  median((rounds.get(name) ?? []).map((cost) => cost[key]));

/** Median of the ratios within each round. */
const ratio = (rounds: Rounds, key: keyof Cost): number =>
  median((rounds.get(names.ours) ?? []).map((own, round) => own[key] / (rounds.get(names.other)?.[round]?.[key] ?? 0)));

function checksOf(all: readonly Rounds[]): Check[] {
  const targets = [
    ['CPU of a turn', 'cpuUs', 1.1],
    ['bytes that a turn writes', 'bytes', 1.25],
    ['writes of a turn', 'writes', 1.2],
  ] as const;
  return loads.flatMap(({ threads }, index) =>
    targets.map(([what, key, atMost]) => {
      const rounds = all[index] ?? new Map();
      return { what: `${what}, ${threads} threads, × ${names.other}`, measured: ratio(rounds, key), atMost };
    }),
  );
}

async function run({ rounds, quick, against }: Context): Promise<Result> {
  const upstream = await startPeer({ ...nodePeer('mock-upstream.ts'), core: 1 });
  const servers = [await open(names.ours, upstream, undefined)];
  if (against !== undefined) servers.push(await open(names.other, upstream, against));
  try {
    for (const { client } of servers) await runTurns(client, 16, quick ? 300 : 1_500);
    const found = loads.map(() => new Map<string, Cost[]>(servers.map(({ name }) => [name, []])));
    for (let round = 0; round < rounds * 2; round += 1) {
      for (const [index, load] of loads.entries()) {
        const inTurn = round % 2 === 0 ? servers : servers.toReversed();
        for (const each of inTurn) found[index]?.get(each.name)?.push(await measured(each, load));
      }
    }
    const rows = loads.flatMap(({ threads }, index) =>
      servers.map(({ name }) => {
        const own = found[index] ?? new Map();
        const bytes = over(own, name, 'bytes');
        const figures = [over(own, name, 'cpuUs'), over(own, name, 'firstMs'), bytes / 1024, over(own, name, 'writes')];
        return [String(threads), name, ...figures, (bytes * turnsPerDay) / 1_048_576];
      }),
    );
    const columns = ['threads at once', 'build', 'CPU µs', 'first piece ms', 'KiB written', 'writes', 'MiB a day'];
    return {
      tables: [{ title: `A short turn, and a day of ${turnsPerDay} turns`, columns, rows }],
      checks: against === undefined ? [] : checksOf(found),
    };
  } finally {
    for (const { client, server } of servers) {
      client.close();
      await server.stop();
    }
    await upstream.stop();
  }
}

export const turnCost: Benchmark = { name: 'turn-cost', title: 'Processor time and disk of a turn', run };
