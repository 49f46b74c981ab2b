import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import * as v from 'valibot';
import { AppServerClient } from '../src/client/index.ts';
import { startAgentServer } from './agent-server.ts';
import { type Benchmark, type Context, median, pssKiB, quantile, type Result, start, timed, wait } from './harness.ts';
import { ensure, type Hub, makePlace, startHub } from './hub.ts';

const agentFile = join(import.meta.dirname, 'peers', 'external-agent.mjs');
const config = { Agent: { Name: 'bench', Command: [process.execPath, agentFile] } };
const agentsAtOnce = 20;
const settleMs = 1_000;

const Started = v.object({ thread: v.object({ id: v.string() }) });
const Delta = v.object({ delta: v.string() });
const Listed = v.array(v.object({ endpoints: v.looseObject({ appServerWebSocket: v.string() }) }));

/** One turn whose agent sends `count` updates, one each `everyMs`. */
interface Turn {
  /** From `turn/start` to the first update. */
  readonly firstMs: number;
  /** From the agent's write to the subscriber, of each update. */
  readonly updatesMs: readonly number[];
}

async function turn(url: string, count: number, everyMs: number): Promise<Turn> {
  const client = await AppServerClient.connect(url, { clientInfo: { name: 'bench', version: '1' } });
  try {
    const { thread } = v.parse(Started, await client.request('thread/start', {}));
    const updatesMs: number[] = [];
    const ended = Promise.withResolvers<void>();
    let firstAt: number | undefined;
    client.onNotification(({ method, params }) => {
      if (method === 'turn/completed') ended.resolve();
      if (method === 'turn/failed') ended.reject(new Error(JSON.stringify(params)));
      if (method !== 'item/agentMessage/delta') return;
      const now = process.hrtime.bigint();
      firstAt ??= performance.now();
      // One notification may carry several updates.
      for (const sentAt of v.parse(Delta, params).delta.trim().split(' '))
        updatesMs.push(Number(now - BigInt(sentAt)) / 1e6);
    });
    const from = performance.now();
    await client.request('turn/start', { threadId: thread.id, input: [{ type: 'text', text: `${count} ${everyMs}` }] });
    await ended.promise;
    if (updatesMs.length !== count) throw new Error(`${updatesMs.length} of ${count} updates arrived`);
    return { firstMs: (firstAt ?? Number.NaN) - from, updatesMs };
  } finally {
    await client.close();
  }
}

/** Agent started by hand: from spawning it to its first update. */
async function byHand(): Promise<number> {
  const { child, stop } = start({ command: process.execPath, args: [agentFile] });
  try {
    return await timed(async () => {
      const lines = createInterface({ input: child.stdout ?? process.stdin });
      for (const [id, method, params] of [
        [1, 'initialize', { protocolVersion: 1 }],
        [2, 'session/new', { cwd: '/', mcpServers: [] }],
        [3, 'session/prompt', { sessionId: 'one', prompt: [{ type: 'text', text: '1 0' }] }],
      ] as const) {
        child.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
        await once(lines, 'line');
      }
    });
  } finally {
    await stop();
  }
}

interface One {
  readonly startMs: number;
  readonly handMs: number;
  readonly memoryMiB: number;
  readonly updatesMs: readonly number[];
}

/** One agent: its start, the memory that it costs the agent server, and updates at a pace. */
async function one(quick: boolean): Promise<One> {
  const server = await startAgentServer({ config });
  try {
    await wait(settleMs);
    const handMs = await byHand();
    const before = pssKiB(server.pid);
    const { firstMs: startMs } = await turn(server.url, 1, 0);
    await wait(settleMs);
    const memoryMiB = (pssKiB(server.pid) - before) / 1_024;
    const { updatesMs } = await turn(server.url, quick ? 300 : 1_500, 2);
    return { startMs, handMs, memoryMiB, updatesMs };
  } finally {
    await server.stop();
  }
}

/** Answers of `GET /v1/status` while agents of so many workspaces write. */
async function crowd(quick: boolean): Promise<readonly number[]> {
  const place = makePlace();
  mkdirSync(place.home, { recursive: true, mode: 0o700 });
  writeFileSync(join(place.home, 'config.json'), JSON.stringify(config), { mode: 0o600 });
  const hub = await startHub(place);
  try {
    for (let index = 0; index < agentsAtOnce; index += 1) await ensure(hub, place.workspace(`agent-${index}`));
    return await statusWhile(hub, quick);
  } finally {
    await hub.stop();
    place.remove();
  }
}

async function statusWhile(hub: Hub, quick: boolean): Promise<readonly number[]> {
  const urls = v.parse(Listed, JSON.parse((await hub.request('GET', '/v1/appservers')).text));
  const turns = (count: number) =>
    Promise.all(urls.map(({ endpoints }) => turn(endpoints.appServerWebSocket, count, 50)));
  await turns(1);
  const took: number[] = [];
  let isOver = false;
  const working = turns(quick ? 60 : 200).finally(() => {
    isOver = true;
  });
  while (!isOver) {
    took.push(await timed(() => hub.request('GET', '/v1/status')));
    await wait(10);
  }
  await working;
  return took;
}

async function run({ quick, rounds }: Context): Promise<Result> {
  const found: One[] = [];
  for (let round = 0; round < (quick ? 1 : rounds); round += 1) found.push(await one(quick));
  const status = await crowd(quick);
  const of = (key: (each: One) => number): number => median(found.map(key));
  const share = (each: number) => of(({ updatesMs }) => quantile(updatesMs, each));
  const overHandMs = of(({ startMs, handMs }) => startMs - handMs);
  const memoryMiB = of((each) => each.memoryMiB);
  return {
    tables: [
      {
        title: 'One external agent that only writes',
        columns: ['', 'start ms', 'by hand ms', 'memory MiB', 'update p50 ms', 'p99 ms'],
        rows: [['its part', of((each) => each.startMs), of((each) => each.handMs), memoryMiB, share(0.5), share(0.99)]],
      },
      {
        title: `GET /v1/status while the agents of ${agentsAtOnce} workspaces write 20 updates a second each`,
        columns: ['', 'p50 ms', 'p99 ms'],
        rows: [['status', quantile(status, 0.5), quantile(status, 0.99)]],
      },
    ],
    checks: [
      { what: 'memory of the agent server for an agent', measured: memoryMiB, atMost: 15, unit: ' MiB' },
      { what: 'update on its way to a subscriber, p50', measured: share(0.5), atMost: 1, unit: ' ms' },
      { what: 'start beyond a start by hand', measured: overHandMs, atMost: 50, unit: ' ms' },
      { what: `status with ${agentsAtOnce} agents, p99`, measured: quantile(status, 0.99), atMost: 5, unit: ' ms' },
    ],
    notes: ['The time of an update begins before the agent writes it; the memory is that of the agent server only.'],
  };
}

export const externalAgents: Benchmark = { name: 'external-agents', title: 'External agents', run };
