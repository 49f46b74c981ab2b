import { once } from 'node:events';
import { realpathSync } from 'node:fs';
import { Agent, request } from 'node:http';
import * as v from 'valibot';
import { WebSocket } from 'ws';
import { ensureStateDirectory } from '../src/config/index.ts';
import { pageSubprotocol } from '../src/protocol/index.ts';
import { dashboardToken, pageToken } from '../src/supervise/index.ts';
import { type Benchmark, type Context, interleaved, median, type Result } from './harness.ts';
import { type Hub, makePlace, startHub } from './hub.ts';
import { makeTalk } from './long-thread.ts';

const paths = { small: '/dashboard/api/config/schema', socket: '/dashboard/ws' } as const;
/** Turns of one answer of the WebSocket: some 300 KB. */
const turnsOfAnswer = 250;
/** Answers that are on their way at once. */
const atOnce = 4;

/** One way to the Dashboard of a workspace. */
interface Way {
  readonly name: string;
  readonly port: number;
  /** Before every path. */
  readonly base: string;
  readonly token: string;
}

const Ensured = v.object({ pid: v.number(), page: v.string(), endpoints: v.object({ dashboard: v.string() }) });

/** One agent server, asked itself and through the Hub. */
function waysOf(hub: Hub, home: string, path: string, { page, endpoints }: v.InferOutput<typeof Ensured>): Way[] {
  const token = dashboardToken(home, path);
  return [
    { name: 'direct', port: Number(new URL(endpoints.dashboard).port), base: '', token },
    { name: 'through the Hub', port: hub.port, base: page.replace(/\/$/, ''), token: pageToken(home) },
  ];
}

interface Stream {
  readonly mebibytesPerSecond: number;
  readonly answers: number;
}

interface Requests {
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly rate: number;
}

/** Asks for the small answer on so many connections, one request after the other on each. */
async function load({ port, base, token }: Way, connections: number, measureMs: number): Promise<Requests> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const options = { agent, port, path: `${base}${paths.small}`, headers: { authorization: `Bearer ${token}` } };
  const get = () =>
    new Promise<void>((resolve, reject) => {
      request({ host: '127.0.0.1', ...options }, (answer) => {
        if (answer.statusCode !== 200) reject(new Error(`${options.path}: ${answer.statusCode}`));
        answer.resume().once('end', resolve).once('error', reject);
      })
        .once('error', reject)
        .end();
    });
  await Promise.all(Array.from({ length: connections }, get));
  const from = performance.now();
  const took: number[] = [];
  const connection = async () => {
    while (performance.now() - from < measureMs) {
      const at = performance.now();
      await get();
      took.push(performance.now() - at);
    }
  };
  await Promise.all(Array.from({ length: connections }, connection));
  const rate = took.length / ((performance.now() - from) / 1_000);
  agent.destroy();
  took.sort((a, b) => a - b);
  return { rate, p50Ms: median(took), p99Ms: took[Math.floor(took.length * 0.99)] ?? Number.NaN };
}

/** Asks for pages of a long thread, a few at once, for so long. */
async function stream({ port, base, token }: Way, threadId: string, measureMs: number): Promise<Stream> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}${base}${paths.socket}`, [pageSubprotocol, token], {
    perMessageDeflate: false,
  });
  await once(socket, 'open');
  let id = 0;
  let bytes = 0;
  let answers = 0;
  const call = (method: string, params: object) => {
    id += 1;
    socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
  };
  const ask = () => call('thread/read', { threadId, includeTurns: true, turnLimit: turnsOfAnswer });
  call('initialize', { clientInfo: { name: 'bench', version: '1' } });
  await once(socket, 'message');
  const from = performance.now();
  await new Promise<void>((resolve, reject) => {
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('the WebSocket was closed')));
    socket.on('message', (data: Buffer) => {
      bytes += data.byteLength;
      answers += 1;
      if (performance.now() - from < measureMs) ask();
      else resolve();
    });
    for (let each = 0; each < atOnce; each += 1) ask();
  });
  const seconds = (performance.now() - from) / 1_000;
  socket.removeAllListeners('close');
  socket.terminate();
  if (bytes / answers < 100_000) throw new Error('the answers hold no turns');
  return { mebibytesPerSecond: bytes / 2 ** 20 / seconds, answers };
}

async function measure(ways: readonly Way[], threadId: string, context: Context): Promise<Result> {
  const requests = (connections: number) =>
    interleaved(ways, context.rounds, (way) => load(way, connections, context.quick ? 500 : 1_500));
  const one = await requests(1);
  const many = await requests(16);
  const streams = await interleaved(ways, context.rounds, (way) =>
    stream(way, threadId, context.quick ? 1_000 : 3_000),
  );
  const [direct, hubs] = ways;
  if (!direct || !hubs) throw new Error('there are two ways');
  const runs = { direct: one.get(direct) ?? [], hubs: one.get(hubs) ?? [] };
  const addedMs = median(runs.hubs.map(({ p50Ms }, round) => p50Ms - (runs.direct[round]?.p50Ms ?? Number.NaN)));
  const rates = { direct: streams.get(direct) ?? [], hubs: streams.get(hubs) ?? [] };
  const ratio = median(
    rates.hubs.map((own, round) => own.mebibytesPerSecond / (rates.direct[round]?.mebibytesPerSecond ?? Number.NaN)),
  );
  return {
    tables: [
      {
        title: 'GET of 40 KB, and a stream of answers of a WebSocket',
        columns: ['way', 'p50 ms', 'p99 ms', 'requests/s, 16 connections', 'stream, MiB/s'],
        rows: ways.map((way) => [
          way.name,
          median((one.get(way) ?? []).map(({ p50Ms }) => p50Ms)),
          median((one.get(way) ?? []).map(({ p99Ms }) => p99Ms)),
          median((many.get(way) ?? []).map(({ rate }) => rate)),
          median((streams.get(way) ?? []).map((run) => run.mebibytesPerSecond)),
        ]),
      },
    ],
    checks: [
      { what: 'time that the Hub adds, p50', measured: addedMs, atMost: 0.3, unit: ' ms' },
      { what: 'stream through the Hub × direct', measured: ratio, atLeast: 0.8 },
    ],
    notes: [
      'Hub, agent server and client share the two cores; the answers are pages of a thread, made for each request.',
    ],
  };
}

async function run(context: Context): Promise<Result> {
  const place = makePlace();
  const path = place.workspace('talked');
  const threadId = makeTalk(path, ensureStateDirectory(place.home, realpathSync.native(path)), 2 * turnsOfAnswer);
  const hub = await startHub(place);
  try {
    const { status, text } = await hub.request('POST', '/v1/appservers/ensure', { workspacePath: path });
    if (status !== 200) throw new Error(`ensure: ${status} ${text}`);
    const workspace = v.parse(Ensured, JSON.parse(text));
    return await measure(waysOf(hub, place.home, realpathSync.native(path), workspace), threadId, context);
  } finally {
    await hub.stop();
    place.remove();
  }
}

export const pageProxy: Benchmark = { name: 'page-proxy', title: 'Pages through the Hub', run };
