/**
 * Parts of every benchmark: servers that say when they are ready, load clients that check the bytes they receive,
 * interleaved rounds, medians, tables, checks. Called by the files beside it; never here: anything of one benchmark.
 */
import * as v from 'valibot';
import { buildNative, type NativePrograms } from './native.ts';
import { runLoad } from './processes.ts';

export * from './machine.ts';
export type { NativePrograms } from './native.ts';
export * from './processes.ts';
export * from './report.ts';

let programs: NativePrograms | undefined;

/** Compiled once in a run. */
export function native(): NativePrograms {
  programs ??= buildNative();
  return programs;
}

/** `A B C A B C …`: `measure` for every item, `rounds` times over; the measurements of each item in order. */
export async function interleaved<I, M>(
  items: readonly I[],
  rounds: number,
  measure: (item: I, round: number) => Promise<M>,
): Promise<Map<I, M[]>> {
  const found = new Map<I, M[]>(items.map((item) => [item, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const item of items) found.get(item)?.push(await measure(item, round));
  }
  return found;
}

/** The time `work` takes, milliseconds. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const from = performance.now();
  await work();
  return performance.now() - from;
}

export const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Calls `look` every `everyMs` until it gives something. Rejects after `withinMs`. */
export async function until<T>(
  what: string,
  withinMs: number,
  everyMs: number,
  look: () => Promise<T | undefined>,
): Promise<T> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (performance.now() > deadline) throw new Error(`${what}: not within ${withinMs} ms`);
    await wait(everyMs);
  }
}

const Phase = v.object({
  mode: v.picklist(['each', 'batch']),
  events: v.number(),
  seconds: v.number(),
  cpuNs: v.number(),
  clientCpuNs: v.number(),
  p50Ms: v.number(),
  p99Ms: v.number(),
  asked: v.number(),
  incomplete: v.number(),
  closed: v.number(),
  peakRssKiB: v.number(),
});
const SseRun = v.object({ phases: v.array(Phase) });

/** One phase of one run of the SSE load client. */
export interface SseFigures {
  readonly mode: 'each' | 'batch';
  /** Every reader got everything. Figures of a run that was not complete mean nothing. */
  readonly isComplete: boolean;
  /** Events delivered per second, all readers together. */
  readonly rate: number;
  readonly cpuNsPerEvent: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Share of one core that the load client used: near 1 it is the bottleneck. */
  readonly clientLoad: number;
  readonly peakRssKiB: number;
}

export interface SseTarget {
  readonly name: string;
  readonly port: number;
  readonly control: number | undefined;
  /** Processes whose CPU time counts, the one whose memory counts first. */
  readonly pids: readonly number[];
  readonly path?: string;
  /** Publish by POST to this path instead of by the control port. */
  readonly publish?: string;
  /** A third-party server that loses events is a finding, not a fault of the benchmark. */
  readonly mayLose?: boolean;
}

export interface SseLoad {
  readonly connections: number;
  /** Warm-up and measurement, milliseconds. */
  readonly phases: readonly { readonly mode: 'each' | 'batch'; readonly warmMs: number; readonly measureMs: number }[];
  readonly stalled?: number;
  /** Ticks per second at a steady pace; absent: as many as the server can, a few at a time. */
  readonly rate?: number;
}

const windowFor = (connections: number): number => Math.max(3, Math.min(128, Math.floor(2048 / connections)));

/** Command line of the SSE load client for a server. */
export function sseArguments(target: SseTarget, connections: number): (string | number)[] {
  return [
    ...['--port', target.port, '--connections', connections, '--pids', target.pids.join(',')],
    ...['--header', 'Authorization: Bearer bench', '--window', windowFor(connections)],
    ...(target.path === undefined ? [] : ['--path', target.path]),
    ...(target.publish === undefined ? ['--control', target.control ?? 0] : ['--publish', target.publish]),
  ];
}

/** Runs the SSE load client. Rejects unless every reader got every event it was to get, or the server `mayLose`. */
export async function loadSse(target: SseTarget, load: SseLoad): Promise<SseFigures[]> {
  const args = [
    ...sseArguments(target, load.connections),
    ...load.phases.flatMap(({ mode, warmMs, measureMs }) => [
      '--phase',
      `${mode === 'each' ? 'e' : 'b'}:${warmMs}:${measureMs}`,
    ]),
    ...(load.stalled === undefined ? [] : ['--stalled', load.stalled]),
    ...(load.rate === undefined ? [] : ['--rate', load.rate]),
  ];
  const { phases } = await runLoad(native().sseLoad, args, SseRun);
  return phases.map((phase) => {
    const isComplete = phase.incomplete === 0 && phase.closed === 0;
    if (!isComplete && target.mayLose !== true) {
      throw new Error(
        `${target.name}: ${phase.incomplete} of ${load.connections} readers did not get all of ${phase.asked} events, ${phase.closed} were cut`,
      );
    }
    return {
      mode: phase.mode,
      isComplete,
      rate: phase.events / phase.seconds,
      cpuNsPerEvent: phase.cpuNs / phase.events,
      p50Ms: phase.p50Ms,
      p99Ms: phase.p99Ms,
      clientLoad: phase.clientCpuNs / (phase.seconds * 1e9),
      peakRssKiB: phase.peakRssKiB,
    };
  });
}

const HttpRun = v.object({
  requests: v.number(),
  seconds: v.number(),
  cpuNs: v.number(),
  clientCpuNs: v.number(),
  p50Ms: v.number(),
  p99Ms: v.number(),
  answerBytes: v.number(),
});

export interface HttpRequestLoad {
  readonly port: number;
  readonly pid: number;
  readonly method: string;
  readonly path: string;
  readonly headers: readonly string[];
  readonly body?: string;
  readonly connections: number;
  readonly warmMs: number;
  readonly measureMs: number;
}

/** Runs the request load client; every answer was a 200. */
export async function loadHttp(load: HttpRequestLoad) {
  const run = await runLoad(
    native().httpLoad,
    [
      ...['--port', load.port, '--pids', load.pid, '--method', load.method, '--path', load.path],
      ...load.headers.flatMap((header) => ['--header', header]),
      ...(load.body === undefined ? [] : ['--body', load.body]),
      ...['--connections', load.connections, '--warm', load.warmMs, '--measure', load.measureMs],
    ],
    HttpRun,
  );
  return {
    rate: run.requests / run.seconds,
    cpuUs: run.cpuNs / run.requests / 1000,
    p50Ms: run.p50Ms,
    p99Ms: run.p99Ms,
    clientLoad: run.clientCpuNs / (run.seconds * 1e9),
    answerBytes: run.answerBytes,
  };
}
