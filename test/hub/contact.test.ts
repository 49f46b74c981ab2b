/** The one connection of the Hub to an agent server: how its feed is read, and the states of the server that it shows. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import { type Probing, probeRegularly } from '../../src/hub/actors/liveness.ts';
import { FeedConnection } from '../../src/hub/contact.ts';
import { type FeedEvent, readInbox } from '../../src/hub/inbox/agent-server.ts';

const chunk = (data: Uint8Array): Buffer =>
  Buffer.concat([Buffer.from(`${data.length.toString(16)}\r\n`), data, Buffer.from('\r\n')]);

/** A server that answers each connection with `answer`; resolves with its requests. */
async function serve(t: Test, answer: (socket: Socket) => void) {
  const asked: string[] = [];
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', (bytes) => {
      asked.push(bytes.toString());
      answer(socket);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const origin = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  return { origin, asked };
}

const closed = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n';
const head = `${closed}\r\n`;

function read(origin: URL, { signal = new AbortController().signal, token = 'secret', silenceMs = 60_000 } = {}) {
  const heard = { signs: 0, events: [] as FeedEvent[] };
  const ended = readInbox(
    `ws://${origin.host}/ws?token=${encodeURIComponent(token)}`,
    signal,
    {
      onSign: () => {
        heard.signs += 1;
      },
      onEvent: (event) => heard.events.push(event),
    },
    silenceMs,
  );
  return { heard, ended };
}

/** One event of the feed, as the agent server writes it. */
const healthEvent = (incarnation: string): Buffer => {
  const data = JSON.stringify({ status: 'ok', incarnation, idleMs: 0 });
  return Buffer.from(`event: health\ndata: ${data}\n\n`);
};

t.test('a feed is read to its end, wherever its bytes are cut', async (t) => {
  let bytes: readonly Buffer[] = [];
  const { origin, asked } = await serve(t, async (socket) => {
    for (const piece of bytes) {
      socket.write(piece);
      await new Promise((resolve) => setImmediate(resolve));
    }
    socket.end();
  });
  const texts = fc.array(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 9 }), { maxLength: 4 });
  await fc.assert(
    fc.asyncProperty(texts, fc.array(fc.nat(400), { maxLength: 5 }), async (incarnations, cuts) => {
      const parts = incarnations.map((each) => chunk(healthEvent(each)));
      const sent = Buffer.concat([Buffer.from(head), ...parts, Buffer.from('0\r\n\r\n')]);
      const at = [0, ...cuts.map((cut) => cut % (sent.length + 1)).sort((a, b) => a - b), sent.length];
      bytes = at.slice(1).map((end, index) => sent.subarray(at[index], end));
      const { heard, ended } = read(origin);
      t.equal(await ended, null);
      t.ok(heard.signs > 0);
      t.same(
        heard.events.map(({ data }) => (data as { incarnation: string }).incarnation),
        incarnations,
      );
    }),
    { seed: 11, numRuns: 60 },
  );
  const [first = ''] = asked;
  t.match(first, /^GET \/v1\/inbox\S* HTTP\/1\.1\r\n/);
  t.match(first, /\r\nhost: 127\.0\.0\.1:\d+\r\n/i);
  t.match(first, /\r\nauthorization: Bearer secret\r\n/i);
});

t.test('a response that is not a feed ends with its status, or as an error', async (t) => {
  const missing = await serve(t, (socket) => socket.write('HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n'));
  t.equal(await read(missing.origin).ended, 404);
  const answers = {
    'SSH-2.0-OpenSSH_9.2\r\n\r\n': 'HPE_INVALID_CONSTANT',
    [`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(20_000)}`]: 'HPE_HEADER_OVERFLOW',
    [`${head}data: x\n`]: 'ECONNRESET',
    [`${head}-1\r\n`]: 'ECONNRESET',
    [`${head}1\r\nab`]: 'ECONNRESET',
    [`${closed}Content-Length: 4\r\n\r\nabcd`]: 'HPE_INVALID_CONTENT_LENGTH',
  };
  for (const [answer, code] of Object.entries(answers)) {
    const { origin } = await serve(t, (socket) => socket.write(answer));
    await t.rejects(read(origin).ended, { code }, answer.slice(0, 30));
  }
});

t.test('an error of the reader ends the feed, and so do an abort and silence', async (t) => {
  const { origin } = await serve(t, (socket) => socket.write(`${head}1\r\na\r\n`));
  const event = await serve(t, (socket) => socket.write(Buffer.concat([Buffer.from(head), chunk(healthEvent('a'))])));
  const broken = readInbox(`ws://${event.origin.host}/ws?token=x`, new AbortController().signal, {
    onSign: () => {},
    onEvent() {
      throw new RangeError('the reader has a bug');
    },
  });
  await t.rejects(broken, RangeError);
  const cut = new AbortController();
  const { ended } = read(origin, { signal: cut.signal });
  cut.abort();
  t.equal(await ended, null);
  t.equal(await read(origin, { signal: AbortSignal.abort() }).ended, null);
  await t.rejects(read(origin, { silenceMs: 1 }).ended, /silent/);
});

t.test('a token that would begin a header of its own is never sent', async (t) => {
  const { origin, asked } = await serve(t, (socket) => socket.end());
  await t.rejects(read(origin, { token: 'a\r\nx: y' }).ended, { code: 'ERR_INVALID_CHAR' });
  t.same(asked, []);
});

type Report = Parameters<Probing['report']>[0];

/** Probes that are due in an hour, of a server whose contact is open. */
function probing(t: Test, answer: { error: string } | { idleMs: number }) {
  const connection = new FeedConnection();
  connection.heard();
  const reports: Report[] = [];
  const asked: (() => void)[] = [];
  const stop = probeRegularly({
    facts: { probe: { intervalMs: 3_600_000, timeoutMs: 1_000 } },
    idleStopMs: 500,
    incarnation: 1,
    ask: async () => {
      asked.shift()?.();
      return answer;
    },
    report: (event) => reports.push(event),
    contact: {
      connection,
      judge: ({ status, idleMs, isRestartDue = false }) =>
        status === 'ok' ? { idleMs, ...(isRestartDue && { isRestartDue }) } : { error: status },
    },
  });
  // The timers of the probing keep no process.
  const awake = setInterval(() => {}, 1_000);
  t.teardown(() => {
    clearInterval(awake);
    stop();
  });
  return { connection, reports, stop, nextProbe: () => new Promise<void>((resolve) => asked.push(resolve)) };
}

const health = (status: string, idleMs = 0) => ({ status, incarnation: 'a', idleMs, nextMs: 5_000 });

t.test('health that a server reports by itself counts as a probe', async (t) => {
  const { connection, reports, nextProbe } = probing(t, { error: 'lockLost' });
  connection.reported(health('ok'));
  connection.reported(health('ok'));
  t.same(reports, [{ type: 'PROBE.PASSED', incarnation: 1, idleMs: 0 }], 'the first success is news, the next is none');
  connection.reported(health('ok', 900));
  t.match(reports[1], { type: 'PROBE.PASSED', idleMs: 900 }, 'and long idleness');
  connection.reported({ ...health('ok'), isRestartDue: true });
  t.match(reports[2], { type: 'PROBE.PASSED', isRestartDue: true }, 'and a due restart');
  const probed = nextProbe();
  connection.reported(health('lockLost'));
  t.match(reports[3], { type: 'PROBE.FAILED', error: 'lockLost' });
  await probed;
});

t.test('the end of the connection calls for a probe at once, once it was open', async (t) => {
  const { connection, reports, stop, nextProbe } = probing(t, { idleMs: 0 });
  const probed = nextProbe();
  connection.ended();
  await probed;
  t.notOk(connection.isOpen);
  t.equal(connection.silentMs, 0);
  stop();
  connection.ended();
  connection.heard();
  connection.reported(health('ok'));
  connection.ended();
  t.ok(reports.length <= 1, 'nothing is reported after the end');
});

t.test('a server that announces a later report may be silent for longer, until its connection ends', (t) => {
  const connection = new FeedConnection();
  connection.heard();
  const usual = connection.toleratedMs;
  connection.reported({ ...health('ok'), nextMs: 25_000 });
  t.ok(connection.toleratedMs > usual);
  connection.ended();
  t.equal(connection.toleratedMs, usual);
  t.end();
});
