import { type Context, interleaved, loadSse, median, type SseFigures, type Table } from './harness.ts';
import { names, type SseServer } from './servers.ts';

type Mode = SseFigures['mode'];
type Figure = Exclude<keyof SseFigures, 'mode' | 'isComplete'>;
const modes: readonly Mode[] = ['each', 'batch'];

const medianOf = (runs: readonly SseFigures[], key: Figure): number => median(runs.map((run) => run[key]));

/** All runs, found by server, mode, number of subscribers and round. */
export class Runs {
  readonly #runs = new Map<string, SseFigures>();
  readonly #rounds: number;
  /** Servers that lost events, in words. */
  readonly losses = new Set<string>();

  constructor(rounds: number) {
    this.#rounds = rounds;
  }

  add(server: string, count: number, round: number, run: SseFigures): void {
    if (run.isComplete) this.#runs.set(`${server} ${run.mode} ${count} ${round}`, run);
    else this.losses.add(`${server} did not deliver every event to ${count} subscribers (${run.mode}): not counted.`);
  }

  #of(server: string, mode: Mode, count: number): (SseFigures | undefined)[] {
    return Array.from({ length: this.#rounds }, (_, round) => this.#runs.get(`${server} ${mode} ${count} ${round}`));
  }

  /** Median over the rounds. */
  median(server: string, mode: Mode, count: number, key: Figure): number {
    return medianOf(
      this.#of(server, mode, count).filter((run) => run !== undefined),
      key,
    );
  }

  /** Median of the ratio within each round: two servers measured a moment apart share the other load of the machine. */
  ratio(server: string, other: string, mode: Mode, count: number, key: Figure): number {
    const others = this.#of(other, mode, count);
    const ratios = this.#of(server, mode, count).map(
      (run, round) => (run?.[key] ?? Number.NaN) / (others[round]?.[key] ?? Number.NaN),
    );
    return median(ratios.filter((ratio) => !Number.isNaN(ratio)));
  }
}

/** Runs every server at its own full speed: a few ticks are always on their way. */
export async function saturate(
  all: readonly SseServer[],
  counts: readonly number[],
  { rounds, quick }: Context,
): Promise<Runs> {
  const found = new Runs(rounds);
  const lengths = quick ? { warmMs: 100, measureMs: 300 } : { warmMs: 150, measureMs: 450 };
  const phases = modes.map((mode) => ({ mode, ...lengths }));
  for (let round = 0; round < rounds; round += 1) {
    for (const connections of counts) {
      for (const { name, target } of all) {
        for (const run of await loadSse(target, { connections, phases })) found.add(name, connections, round, run);
      }
    }
  }
  return found;
}

/** Rates at every number of subscribers, and the whole picture at `deep` subscribers. */
export function fanoutTables(all: readonly SseServer[], counts: readonly number[], deep: number, runs: Runs): Table[] {
  return modes.map((mode) => ({
    title: `${mode === 'each' ? 'Each, one event a tick' : 'Batched, 16 events a tick'}: events delivered per second`,
    columns: [
      'server',
      ...counts.map((count) => `N=${count}`),
      `at ${deep}: × limit`,
      'CPU ns/event',
      'CPU × limit',
      'p50 ms',
      'p99 ms',
      'client load',
    ],
    rows: all.map(({ name }) => [
      name,
      ...counts.map((count) => runs.median(name, mode, count, 'rate')),
      runs.ratio(name, names.limit, mode, deep, 'rate'),
      runs.median(name, mode, deep, 'cpuNsPerEvent'),
      runs.ratio(name, names.limit, mode, deep, 'cpuNsPerEvent'),
      runs.median(name, mode, deep, 'p50Ms'),
      runs.median(name, mode, deep, 'p99Ms'),
      runs.median(name, mode, deep, 'clientLoad'),
    ]),
  }));
}

/** Runs all servers at one pace, below the limit of the slowest: latency without queues. */
export async function steady(all: readonly SseServer[], { rounds, quick }: Context): Promise<Table> {
  const connections = 1000;
  const rate = 20;
  const phases = [{ mode: 'each', warmMs: 150, measureMs: quick ? 400 : 1000 } as const];
  const runs = await interleaved(all, rounds, ({ target }) => loadSse(target, { connections, phases, rate }));
  return {
    title: `At a steady pace: ${rate} events/s to ${connections} subscribers`,
    columns: ['server', 'p50 ms', 'p99 ms', 'CPU ns/event'],
    rows: all.map((server) => {
      const own = (runs.get(server) ?? []).flat();
      return [server.name, medianOf(own, 'p50Ms'), medianOf(own, 'p99Ms'), medianOf(own, 'cpuNsPerEvent')];
    }),
  };
}
