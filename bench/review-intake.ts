import { createHmac, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type Benchmark, type Context, figure, median, onExit, type Result, startPeer, wait } from './harness.ts';

const secret = randomBytes(24).toString('hex');
const connections = 64;
/** Text that brings a payload to the size of GitHub's own of a pull request. */
const filler = 'x'.repeat(20_000);

/** Bodies that are signed beforehand, to measure the server and not the signing. */
const different = 500;
const idLength = 36;
/** The engine compiles and SQLite caches first: that rate is not sustained. */
const warmUpMs = 2_000;

interface Signed {
  readonly head: string;
  readonly body: Buffer;
}

function signed(number: number): Signed {
  const body = Buffer.from(
    JSON.stringify({
      action: 'synchronize',
      repository: { full_name: 'octo/hello', html_url: 'https://github.com/octo/hello' },
      pull_request: { number, body: filler },
      sender: { login: 'alice' },
    }),
  );
  const signature = createHmac('sha256', secret).update(body).digest('hex');
  const head = [
    'POST /api/v1/sources/github/webhook HTTP/1.1',
    'Host: localhost',
    'Content-Type: application/json',
    'X-GitHub-Event: pull_request',
    `X-Hub-Signature-256: sha256=${signature}`,
    `Content-Length: ${body.byteLength}`,
    'X-GitHub-Delivery: ',
  ];
  return { head: head.join('\r\n'), body };
}
const deliveries: readonly Signed[] = Array.from({ length: different }, (_, index) => signed(index + 1));

interface Load {
  /** Milliseconds of each answer. */
  readonly times: number[];
  /** Deliveries that were answered 202. */
  readonly accepted: string[];
  readonly refused: number;
}

/** A client that sends its next delivery when the last is answered, until `isOver` or the connection ends. */
function client(port: number, name: number, load: { refused: number } & Omit<Load, 'refused'>, isOver: () => boolean) {
  return new Promise<void>((resolve) => {
    const socket: Socket = connect({ port, host: '127.0.0.1', noDelay: true });
    let count = 0;
    let id = '';
    let sentAt = 0;
    let answer = '';
    const next = () => {
      if (isOver()) return socket.end();
      count += 1;
      id = `d-${process.pid}-${name}-${count}`.padEnd(idLength, '0');
      const { head, body } = deliveries[(name * 8 + count) % different] as Signed;
      sentAt = performance.now();
      answer = '';
      socket.cork();
      socket.write(`${head}${id}\r\n\r\n`, 'latin1');
      socket.write(body);
      return socket.uncork();
    };
    socket.setEncoding('latin1');
    socket.on('connect', next);
    socket.on('data', (text: string) => {
      answer += text;
      const headEnd = answer.indexOf('\r\n\r\n');
      const length = Number(/content-length: (\d+)/i.exec(answer)?.[1]);
      if (headEnd < 0 || answer.length < headEnd + 4 + length) return;
      load.times.push(performance.now() - sentAt);
      if (/^HTTP\/1\.1 20[02]/.test(answer)) load.accepted.push(id);
      else load.refused += 1;
      next();
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve());
  });
}

const percentile = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;

/** Deliveries of the database, by id. */
function kept(directory: string): ReadonlySet<string> {
  const database = new DatabaseSync(join(directory, 'backend.db'));
  try {
    return new Set(
      database
        .prepare('select "deliveryId" as id from deliveries')
        .all()
        .map(({ id }) => String(id)),
    );
  } finally {
    database.close();
  }
}

/** One server under load for a while, then killed in the middle of it. `bare`: one that only reads and answers. */
async function round(measureMs: number, isBare: boolean) {
  const directory = mkdtempSync(join(tmpdir(), 'oratorio-bench-'));
  const takeBack = onExit(() => rmSync(directory, { recursive: true, force: true }));
  try {
    const script = join(import.meta.dirname, isBare ? 'peers/bare-uws.ts' : 'review-intake-server.ts');
    const server = await startPeer({
      command: process.execPath,
      args: ['--disable-warning=ExperimentalWarning', script, ...(isBare ? [] : [directory, secret])],
      core: 0,
    });
    const load = { times: [] as number[], accepted: [] as string[], refused: 0 };
    const clients = Array.from({ length: connections }, (_, name) => client(server.port, name, load, () => false));
    await wait(warmUpMs);
    const before = load.accepted.length;
    load.times.length = 0;
    const from = performance.now();
    await wait(measureMs);
    const seconds = (performance.now() - from) / 1000;
    const times = load.times.slice().sort((one, other) => one - other);
    const rate = (load.accepted.length - before) / seconds;
    await server.stop();
    await Promise.all(clients);
    const found = isBare ? new Set(load.accepted) : kept(directory);
    const lost = load.accepted.filter((id) => !found.has(id)).length;
    return {
      rate,
      p50Ms: percentile(times, 0.5),
      p99Ms: percentile(times, 0.99),
      lost,
      refused: load.refused,
      accepted: load.accepted.length,
    };
  } finally {
    takeBack();
    rmSync(directory, { recursive: true, force: true });
  }
}

async function run({ quick, rounds }: Context): Promise<Result> {
  const found: Awaited<ReturnType<typeof round>>[] = [];
  const bare: typeof found = [];
  const measureMs = quick ? 3_000 : 10_000;
  for (let index = 0; index < rounds; index += 1) {
    bare.push(await round(measureMs / 2, true));
    found.push(await round(measureMs, false));
  }
  const ceiling = median(bare.map(({ rate }) => rate));
  const of = (pick: (each: (typeof found)[number]) => number) => median(found.map(pick));
  const sum = (pick: (each: (typeof found)[number]) => number) => found.reduce((all, each) => all + pick(each), 0);
  return {
    tables: [
      {
        title: `Signed deliveries of 20 kB over ${connections} connections into SQLite, each on the disk before its answer`,
        columns: ['', 'deliveries/s', 'p50 ms', 'p99 ms'],
        rows: [
          ['webhook', of(({ rate }) => rate), of(({ p50Ms }) => p50Ms), of(({ p99Ms }) => p99Ms)],
          [
            'bare uWebSockets.js that reads and answers: the ceiling of this client',
            ceiling,
            median(bare.map(({ p50Ms }) => p50Ms)),
            median(bare.map(({ p99Ms }) => p99Ms)),
          ],
        ],
      },
    ],
    checks: [
      { what: 'signed deliveries per second', measured: of(({ rate }) => rate), atLeast: 2_000 },
      { what: 'answer, p99', measured: of(({ p99Ms }) => p99Ms), atMost: 50, unit: ' ms' },
      { what: 'deliveries answered 202 and lost by kill -9', measured: sum(({ lost }) => lost), atMost: 0 },
      { what: 'deliveries refused', measured: sum(({ refused }) => refused), atMost: 0 },
    ],
    notes: [
      `${figure(sum(({ accepted }) => accepted))} deliveries; each round ends with a kill -9 under full load.`,
      `The webhook does ${figure((100 * of(({ rate }) => rate)) / ceiling)} % of the bare server’s rate with the same client in the same run.`,
    ],
  };
}

export const reviewIntake: Benchmark = { name: 'review-intake', title: 'Webhook of the review backend', run };
