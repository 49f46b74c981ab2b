/** The one connection of the Hub to an agent server: how its feed is read, and the states of the server that it shows. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import { type Probing, probeRegularly } from '../../src/hub/actors/liveness.ts';
import { FeedConnection } from '../../src/hub/contact.ts';
import { ChunkDecoder } from '../../src/hub/inbox/chunks.ts';
import { type FeedRequest, readFeed } from '../../src/hub/inbox/feed-socket.ts';

function decode(pieces: readonly Buffer[]): { readonly body: Buffer; readonly isOver: boolean } {
  const decoder = new ChunkDecoder();
  const body: Buffer[] = [];
  for (const piece of pieces) decoder.push(piece, (data) => body.push(Buffer.from(data)));
  return { body: Buffer.concat(body), isOver: decoder.isOver };
}

const chunk = (data: Uint8Array): Buffer =>
  Buffer.concat([Buffer.from(`${data.length.toString(16)}\r\n`), data, Buffer.from('\r\n')]);

t.test('a chunked body is the same, wherever it is cut', async () => {
  const chunks = fc.array(fc.uint8Array({ minLength: 1, maxLength: 40 }), { maxLength: 6 });
  fc.assert(
    fc.property(chunks, fc.boolean(), fc.array(fc.nat(300), { maxLength: 8 }), (parts, isWhole, cuts) => {
      const sent = Buffer.concat([...parts.map(chunk), Buffer.from(isWhole ? '0\r\n\r\n' : '')]);
      const at = [0, ...cuts.map((cut) => cut % (sent.length + 1)).sort((a, b) => a - b), sent.length];
      const pieces = at.slice(1).map((end, index) => sent.subarray(at[index], end));
      const read = decode(pieces);
      return read.body.equals(Buffer.concat(parts)) && read.isOver === isWhole;
    }),
    { seed: 11 },
  );
});

t.test('bytes that are not a chunk are an error', async (t) => {
  for (const bytes of [
    'x\r\n',
    '-1\r\n',
    '\r\n',
    '5\n',
    '1\r\nab',
    '1\r\na\r\r',
    `${'0'.repeat(2_000)}`,
    '123456789\r\n',
  ])
    t.throws(() => decode([Buffer.from(bytes)]), Error, JSON.stringify(bytes.slice(0, 20)));
  t.same(decode([Buffer.from('1 ;name=value\r\na\r\n')]).body.toString(), 'a', 'extensions are passed over');
});

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

function read(origin: URL, changes: Partial<FeedRequest> = {}) {
  const heard = { signs: 0, text: '' };
  const { signal } = new AbortController();
  const ended = readFeed(
    { origin, path: '/v1/inbox', token: 'secret', signal, silenceMs: 60_000, ...changes },
    {
      onSign: () => {
        heard.signs += 1;
      },
      onData: (piece) => {
        heard.text += piece.toString();
      },
    },
  );
  return { heard, ended };
}

const head = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n';

t.test('a feed is read to its end, and begins behind the head', async (t) => {
  const { origin, asked } = await serve(t, (socket) => socket.end(`${head}4\r\n:\n\n\n\r\n0\r\n\r\n`));
  const { heard, ended } = read(origin);
  t.equal(await ended, null);
  t.same(heard.text, ':\n\n\n');
  t.ok(heard.signs > 0);
  t.match(
    asked[0],
    /^GET \/v1\/inbox HTTP\/1\.1\r\nHost: 127\.0\.0\.1:\d+\r\n(?:.*\r\n)*Authorization: Bearer secret\r\n\r\n$/,
  );
});

t.test('a response that is not a feed ends with its status, or as an error', async (t) => {
  const missing = await serve(t, (socket) => socket.write('HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n'));
  t.equal(await read(missing.origin).ended, 404);
  const answers = {
    'SSH-2.0-OpenSSH_9.2\r\n\r\n': /not of HTTP/,
    'HTTP/1.1 200 OK\r\n\r\ndata: x\n\n': /not in chunks/,
    [`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(20_000)}`]: /too long a head/,
    [`${head}data: x\n`]: /not in chunks/,
  };
  for (const [answer, message] of Object.entries(answers)) {
    const { origin } = await serve(t, (socket) => socket.write(answer));
    await t.rejects(read(origin).ended, { message }, answer.slice(0, 30));
  }
});

t.test('an error of the reader ends the feed, and so do an abort and silence', async (t) => {
  const { origin } = await serve(t, (socket) => socket.write(`${head}1\r\na\r\n`));
  const fault = { onSign: () => {}, onData: () => t.fail('unreachable') };
  const { signal } = new AbortController();
  const request = { origin, path: '/', token: '', signal, silenceMs: 60_000 };
  const broken = readFeed(request, {
    ...fault,
    onData() {
      throw new RangeError('an event of the stream is too long');
    },
  });
  await t.rejects(broken, RangeError);
  const cut = new AbortController();
  const feed = readFeed({ ...request, signal: cut.signal }, { ...fault, onData: () => cut.abort() });
  t.equal(await feed, null);
  t.equal(await readFeed({ ...request, signal: AbortSignal.abort() }, fault), null);
  await t.rejects(read(origin, { silenceMs: 1 }).ended, /silent/);
});

t.test('a token that would begin a header of its own is never sent', async (t) => {
  const { origin, asked } = await serve(t, (socket) => socket.end());
  await t.rejects(read(origin, { token: 'a\r\nx: y' }).ended, /token/);
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
    facts: { probe: { intervalMs: 3_600_000, timeoutMs: 1_000, idleStopMs: 500 } },
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

const health = (status: string, idleMs = 0) => ({ status, incarnation: 'a', idleMs });

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
