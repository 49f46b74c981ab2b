import * as v from 'valibot';
import type { ChatServer } from './chat-servers.ts';
import { native, runLoad } from './harness.ts';
import { type MockModel, mockAnswers, textOf } from './peers/mock-answers.ts';

const ChatRun = v.object({
  answers: v.number(),
  chunks: v.number(),
  seconds: v.number(),
  cpuNs: v.number(),
  besideCpuNs: v.number(),
  clientCpuNs: v.number(),
  samples: v.number(),
  firstP50Ms: v.number(),
  firstP99Ms: v.number(),
  p50Ms: v.number(),
  p99Ms: v.number(),
  peakRssKiB: v.number(),
});

export interface ChatLoad {
  readonly model: MockModel;
  readonly isStream: boolean;
  /** Uses the Responses API; default: chat completions. */
  readonly isResponse?: boolean;
  readonly connections: number;
  readonly warmMs: number;
  readonly measureMs: number;
  /** The mock upstream, which shares its core with the load client. */
  readonly upstreamPid: number;
}

/** One run of the chat load client. Times of a stream's first piece, and of whole answers. */
export interface ChatFigures {
  readonly answersPerSecond: number;
  readonly chunksPerSecond: number;
  readonly cpuUsPerAnswer: number;
  readonly cpuMsPer1000Chunks: number;
  readonly firstP50Ms: number;
  readonly firstP99Ms: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly peakRssMiB: number;
  /** Share of a core that load client and upstream used together: near 1 it is they that were measured. */
  readonly besideLoad: number;
}

/** Runs the chat load client. Every answer was whole and right to the letter; it rejects otherwise. */
export async function loadChat({ name, port, pid, headers }: ChatServer, load: ChatLoad): Promise<ChatFigures> {
  const { model, isStream, isResponse = false, connections } = load;
  const { chunks, paceMs } = mockAnswers[model];
  const question = [{ role: 'user', content: 'What do you do?' }];
  const asked = isResponse ? { input: question, store: false } : { messages: question };
  const body = JSON.stringify({ model, stream: isStream, ...asked });
  const args = [
    ...(isResponse ? ['--path', '/v1/responses'] : []),
    ...['--port', port, '--connections', connections, '--body', body, '--text', textOf(model)],
    ...headers.flatMap((header) => ['--header', header]),
    ...(isStream ? ['--chunks', chunks, '--spread', chunks * paceMs] : []),
    ...['--pids', pid, '--beside', load.upstreamPid, '--warm', load.warmMs, '--measure', load.measureMs],
  ];
  const run = await runLoad(native().chatLoad, args, ChatRun).catch((error: unknown) => {
    throw new Error(`${name}, ${connections} at once: ${(error as Error).message}`, { cause: error });
  });
  return {
    answersPerSecond: run.answers / run.seconds,
    chunksPerSecond: run.chunks / run.seconds,
    cpuUsPerAnswer: run.cpuNs / run.answers / 1000,
    cpuMsPer1000Chunks: run.cpuNs / run.chunks / 1000,
    firstP50Ms: run.firstP50Ms,
    firstP99Ms: run.firstP99Ms,
    p50Ms: run.p50Ms,
    p99Ms: run.p99Ms,
    peakRssMiB: run.peakRssKiB / 1024,
    besideLoad: (run.clientCpuNs + run.besideCpuNs) / (run.seconds * 1e9),
  };
}
