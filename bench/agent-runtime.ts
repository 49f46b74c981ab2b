import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as v from 'valibot';
import { type AgentServer, getOk, startAgentServer } from './agent-server.ts';
import { type BesideFlood, besideFloods } from './floods.ts';
import {
  type Benchmark,
  type Check,
  type Context,
  firstLine,
  median,
  onExit,
  type Peer,
  type Result,
  rssKiB,
  runLoad,
  start,
  startPeer,
  type Table,
  timed,
  wait,
} from './harness.ts';
import { makeLongThread } from './long-thread.ts';
import { toolsModel, toolsText } from './peers/mock-answers.ts';
import { RpcClient } from './rpc-client.ts';
import { nodePeer } from './servers.ts';

const mib = (pid: number): number => rssKiB(pid) / 1024;
const peerFile = (name: string): string => join(import.meta.dirname, 'peers', name);
const nodeFlags = ['--disable-warning=ExperimentalWarning'];

const configOf = (upstream: Peer) => ({
  EndPoint: `http://127.0.0.1:${upstream.port}/v1`,
  ApiKey: 'bench',
  Model: 'instant',
});

async function withServer<T>(
  upstream: Peer,
  work: (server: AgentServer) => Promise<T>,
  prepare?: (workspacePath: string, stateDirectory: string) => void,
): Promise<T> {
  const server = await startAgentServer({ config: configOf(upstream), core: 0, ...(prepare && { prepare }) });
  try {
    return await work(server);
  } finally {
    await server.stop();
  }
}

const RpcRun = v.object({
  turns: v.number(),
  seconds: v.number(),
  cpuMs: v.number(),
  clientLoad: v.number(),
  p50Ms: v.number(),
  p99Ms: v.number(),
  firstP50Ms: v.number(),
  firstP99Ms: v.number(),
});
type RpcFigures = v.InferOutput<typeof RpcRun>;

const threadsAtOnce = [1, 16, 64] as const;

function loadTurns({ url, pid }: AgentServer, threads: number, warmMs: number, measureMs: number): Promise<RpcFigures> {
  const args = ['--url', url, '--pid', pid, '--threads', threads, '--warm', warmMs, '--measure', measureMs];
  return runLoad(process.execPath, [...nodeFlags, peerFile('rpc-load.ts'), ...args], RpcRun);
}

/** Turns of stored threads, over one WebSocket: every item is on the disk before the client hears of it. */
async function turns(upstream: Peer, { quick, rounds }: Context): Promise<{ table: Table }> {
  return withServer(upstream, async (server) => {
    await loadTurns(server, 16, quick ? 1_500 : 5_000, 100);
    const runs = threadsAtOnce.map((): RpcFigures[] => []);
    for (let round = 0; round < rounds; round += 1) {
      for (const [index, threads] of threadsAtOnce.entries()) {
        runs[index]?.push(await loadTurns(server, threads, 300, quick ? 1_000 : 1_500));
      }
    }
    const of = (index: number, key: (run: RpcFigures) => number) => median((runs[index] ?? []).map(key));
    return {
      table: {
        title: 'Turns over JSON-RPC in stored threads, 16 pieces of text each',
        columns: [
          'threads at once',
          'turns/s',
          'CPU ms per turn',
          'p50 ms',
          'p99 ms',
          'first piece p50',
          'client load',
        ],
        rows: threadsAtOnce.map((threads, index) => [
          String(threads),
          of(index, (run) => run.turns / run.seconds),
          of(index, (run) => run.cpuMs / run.turns),
          of(index, (run) => run.p50Ms),
          of(index, (run) => run.p99Ms),
          of(index, (run) => run.firstP50Ms),
          of(index, (run) => run.clientLoad),
        ]),
      },
    };
  });
}

interface Figure {
  readonly what: string;
  readonly value: number;
}

/** Three requests to the model, one file read, one file written; each turn in a thread of its own. */
async function toolTurns(upstream: Peer, { quick }: Context): Promise<Figure[]> {
  const prepare = (path: string): void => writeFileSync(join(path, 'notes.txt'), 'Nothing is to be done.\n'.repeat(40));
  return withServer(
    upstream,
    async ({ url, workspacePath }) => {
      const client = await RpcClient.open(url);
      const times: number[] = [];
      for (let index = quick ? -20 : -100; index < (quick ? 40 : 200); index += 1) {
        const threadId = await client.startThread({ model: toolsModel, approvalPolicy: 'autoApprove' });
        const { status, text, ms } = await client.turn(threadId, 'Read the notes and write the report.');
        if (status !== 'completed' || text !== toolsText) throw new Error(`a turn with tools: ${status}, ${text}`);
        if (index >= 0) times.push(ms);
      }
      client.close();
      if (readFileSync(join(workspacePath, 'report.txt'), 'utf8') !== 'Everything was read.\n') {
        throw new Error('the tool has not written what it was told to');
      }
      times.sort((a, b) => a - b);
      return [
        { what: 'turn with two tool calls, upstream and client included, p50 ms', value: median(times) },
        { what: 'the same, p99 ms', value: times[Math.floor(times.length * 0.99)] ?? Number.NaN },
      ];
    },
    prepare,
  );
}

/** From spawning the least Node HTTP server to its first answer, not pinned: as the agent server beside it. */
async function bareStart(): Promise<number> {
  const { command, args } = nodePeer('minimal-node.mjs');
  const from = performance.now();
  const peer = await startPeer({ command, args });
  await getOk(`http://127.0.0.1:${peer.port}/`);
  const ms = performance.now() - from;
  await peer.stop();
  return ms;
}

async function starts(upstream: Peer, { quick }: Context): Promise<Figure[]> {
  const ours: number[] = [];
  const bare: number[] = [];
  // The first pair warms the caches of the file system.
  for (let index = -1; index < (quick ? 5 : 15); index += 1) {
    const bareMs = await bareStart();
    const server = await startAgentServer({ config: configOf(upstream) });
    await server.stop();
    if (index < 0) continue;
    bare.push(bareMs);
    ours.push(server.readyMs);
  }
  return [
    { what: 'agent server, from spawn to the first answer of /readyz, ms', value: median(ours) },
    { what: 'bare Node server, from spawn to its first answer, ms', value: median(bare) },
  ];
}

const openThreads = 100;

async function memory(upstream: Peer): Promise<Figure[]> {
  return withServer(upstream, async ({ url, pid }) => {
    await wait(1_500);
    const idle = mib(pid);
    const client = await RpcClient.open(url);
    const ids: string[] = [];
    for (let index = 0; index < openThreads; index += 1) ids.push(await client.startThread({}));
    await Promise.all(ids.map((threadId) => client.call('thread/subscribe', { threadId })));
    const ends = await Promise.all(ids.map((threadId) => client.turn(threadId, 'What do you do?')));
    if (ends.some(({ status }) => status !== 'completed')) throw new Error('a turn has failed');
    await wait(1_500);
    const busy = mib(pid);
    client.close();
    return [
      { what: 'agent server, idle, resident, MiB', value: idle },
      { what: `with ${openThreads} open threads after a turn in each, resident, MiB`, value: busy },
    ];
  });
}

const TraceRun = v.object({ steady: v.number(), most: v.number(), dropped: v.number(), longestBlockMs: v.number() });
const tracesPerSecond = 100_000;

async function traces({ quick, rounds }: Context): Promise<v.InferOutput<typeof TraceRun>> {
  const runs: v.InferOutput<typeof TraceRun>[] = [];
  for (let round = 0; round < Math.min(rounds, 3); round += 1) {
    const directory = mkdtempSync(join(tmpdir(), 'oratorio-bench-traces-'));
    const remove = (): void => rmSync(directory, { recursive: true, force: true });
    const takeBack = onExit(remove);
    const args = [...nodeFlags, peerFile('trace-rate.ts'), directory, String(tracesPerSecond), quick ? '1' : '2'];
    // Not pinned: the store has a thread of its own that moves pages to the database.
    const { child, stop } = start({ command: process.execPath, args });
    runs.push(v.parse(TraceRun, JSON.parse(await firstLine(child, 60_000))));
    await stop();
    takeBack();
    remove();
  }
  const of = (key: keyof v.InferOutput<typeof TraceRun>) => median(runs.map((run) => run[key]));
  return { steady: of('steady'), most: of('most'), dropped: of('dropped'), longestBlockMs: of('longestBlockMs') };
}

const longTurns = 10_000;

async function longThread(upstream: Peer, { quick }: Context): Promise<Figure[]> {
  let threadId = '';
  const prepare = (path: string, stateDirectory: string): void => {
    threadId = makeLongThread(path, stateDirectory, longTurns);
  };
  return withServer(
    upstream,
    async ({ url }) => {
      const client = await RpcClient.open(url);
      const resume = (): Promise<number> => timed(() => client.call('thread/resume', { threadId }));
      const read = (): Promise<number> => timed(() => client.call('thread/read', { threadId, includeTurns: true }));
      const first = await resume();
      const resumes: number[] = [];
      const reads: number[] = [];
      for (let index = 0; index < (quick ? 5 : 20); index += 1) {
        resumes.push(await resume());
        reads.push(await read());
      }
      client.close();
      return [
        { what: `thread/resume of ${longTurns} turns, for the first time, ms`, value: first },
        { what: 'the same again, median, ms', value: median(resumes) },
        { what: 'thread/read of its newest page, median, ms', value: median(reads) },
      ];
    },
    prepare,
  );
}

const most = (figures: readonly Figure[], index: number, what: string, atMost: number, unit: string): Check => ({
  ...{ what, atMost, unit },
  measured: figures[index]?.value ?? Number.NaN,
});

const floodTable = (floods: readonly BesideFlood[]): Table => ({
  title: 'Turns of a conversation while another one receives 40 MB or 50,000 messages again and again',
  columns: ['sender', 'alone ms', 'p50 ms', 'p99 ms', 'flooding turn ms', 'floods', 'resident MiB'],
  rows: floods.map(({ name, aloneMs, p50Ms, p99Ms, floodMs, floods: times, mib: resident }) => [
    ...[name, aloneMs, p50Ms, p99Ms, floodMs],
    ...[String(times), resident],
  ]),
});

async function run(context: Context): Promise<Result> {
  const upstream = await startPeer({ ...nodePeer('mock-upstream.ts'), core: 1 });
  try {
    const started = await starts(upstream, context);
    const resident = await memory(upstream);
    const { table } = await turns(upstream, context);
    const withTools = await toolTurns(upstream, context);
    const opened = await longThread(upstream, context);
    const traced = await traces(context);
    const flooded = await besideFloods(upstream, context.quick ? 40 : 300);
    const traceFigures: Figure[] = [
      { what: `trace events/s at a steady ${tracesPerSecond}`, value: traced.steady },
      { what: 'longest block of the event loop meanwhile, ms', value: traced.longestBlockMs },
      { what: 'trace events/s, as many as it takes', value: traced.most },
      { what: 'trace events dropped', value: traced.dropped },
    ];
    const all = [...started, ...resident, ...withTools, ...opened, ...traceFigures];
    return {
      tables: [
        table,
        { title: 'The agent server', columns: ['', 'median'], rows: all.map(({ what, value }) => [what, value]) },
        floodTable(flooded),
      ],
      checks: [
        most(started, 0, 'agent server ready', 300, ' ms'),
        most(resident, 1, `resident with ${openThreads} open threads`, 120, ' MiB'),
        most(withTools, 0, 'turn with two tool calls, p50', 15, ' ms'),
        most(opened, 0, `a thread of ${longTurns} turns opened`, 100, ' ms'),
        { what: 'trace events/s, steady', measured: traced.steady, atLeast: tracesPerSecond * 0.99 },
        { what: 'trace events dropped', measured: traced.dropped, atMost: 0 },
        {
          what: 'delay of a turn beside a flood, p99, the worst of all kinds',
          measured: Math.max(...flooded.map(({ p99Ms, aloneMs }) => p99Ms - aloneMs)),
          ...{ atMost: 300, unit: ' ms' },
        },
        most(traceFigures, 1, 'longest block of the event loop while tracing', 20, ' ms'),
      ],
    };
  } finally {
    await upstream.stop();
  }
}

export const agentRuntime: Benchmark = { name: 'agent-runtime', title: 'The agent runtime', run };
