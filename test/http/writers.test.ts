/** Answers that their handler writes as they come, and the guard in front of all routes; on both adapters. */
import { createHash, randomBytes } from 'node:crypto';
import t from 'tap';
import { HttpError, type ReplyStream, type Route, stream, text } from '../../src/http/index.ts';
import { type Adapter, codeOf, eventually, exchange, RawClient, rawRequest, start } from './support.ts';

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

/** The body in a chunked answer as a bare socket sees it. */
function unchunked(received: string): { chunks: string[]; isWhole: boolean; rest: string } {
  let at = received.indexOf('\r\n\r\n') + 4;
  const chunks: string[] = [];
  for (;;) {
    const lineEnd = received.indexOf('\r\n', at);
    if (lineEnd < 0) return { chunks, isWhole: false, rest: '' };
    const size = Number.parseInt(received.slice(at, lineEnd), 16);
    const begin = lineEnd + 2;
    if (size === 0) return { chunks, isWhole: true, rest: received.slice(begin + 2) };
    if (received.length < begin + size + 2) return { chunks, isWhole: false, rest: '' };
    chunks.push(received.slice(begin, begin + size));
    at = begin + size + 2;
  }
}

function writing(open: (stream: ReplyStream, signal: AbortSignal) => void): Route<undefined> {
  return {
    method: 'POST',
    path: '/written',
    deadlineMs: 0,
    handler: async (context) => {
      await context.bytes();
      return stream(200, 'text/plain', (s) => open(s, context.signal), [['x-kind', 'written']]);
    },
  };
}

function suite(adapter: Adapter): void {
  const post = rawRequest('POST', '/written', { 'content-length': '2' }, 'hi');

  t.test(`${adapter}: writes of one turn are one chunk, and the first is sent with the headers`, async (t) => {
    const route = writing((stream) => {
      stream.write('a');
      stream.write('b');
      setImmediate(() => {
        stream.write('c');
        stream.write('ü');
        setImmediate(() => {
          stream.write('e');
          stream.end();
          stream.write('never');
          stream.end();
        });
      });
    });
    const { port } = await start(t, adapter, { routes: [route] });
    const client = await RawClient.connect(t, port);
    client.send(post);
    const received = await client.until(/\r\n0\r\n\r\n/);
    t.match(received, /^HTTP\/1\.1 200 OK\r\n/);
    t.match(received, /x-kind: written\r\n/i);
    t.match(received, /transfer-encoding: chunked\r\n/i);
    t.strictSame(unchunked(received).chunks, ['ab', Buffer.from('cü').toString('latin1'), 'e']);
    client.received = '';
    client.send(post);
    t.ok(unchunked(await client.until(/\r\n0\r\n\r\n/)).isWhole, 'the connection serves the next request');
  });

  t.test(`${adapter}: an answer opened without data begins with an empty line`, async (t) => {
    let written: ReplyStream | undefined;
    const route = writing((stream) => {
      written = stream;
    });
    const { port } = await start(t, adapter, { routes: [route] });
    const client = await RawClient.connect(t, port);
    client.send(post);
    await client.until(/\r\n\r\n1\r\n\n/);
    written?.write('late');
    written?.end();
    t.strictSame(unchunked(await client.until(/\r\n0\r\n\r\n/)).chunks.join(''), '\nlate');
  });

  t.test(`${adapter}: HEAD has the headers and is never opened`, async (t) => {
    let opened = 0;
    const route: Route<undefined> = {
      method: 'GET',
      path: '/written',
      handler: () =>
        stream(200, 'text/plain', () => {
          opened += 1;
        }),
    };
    const { url, server } = await start(t, adapter, { routes: [route] });
    const answer = await fetch(`${url}/written`, { method: 'HEAD' });
    t.equal(answer.headers.get('content-type'), 'text/plain');
    t.equal(await answer.text(), '');
    t.equal(opened, 0);
    await server.close(5_000);
  });

  t.test(`${adapter}: a synchronous handler may stream`, async (t) => {
    const route: Route<undefined> = {
      method: 'GET',
      path: '/written',
      handler: () =>
        stream(201, 'text/plain', (s) => {
          s.write('now');
          s.end();
        }),
    };
    const { url } = await start(t, adapter, { routes: [route] });
    const answer = await fetch(`${url}/written`);
    t.equal(answer.status, 201);
    t.equal((await answer.text()).trim(), 'now');
  });

  t.test(`${adapter}: a disconnect aborts the request at once, and later writes are ignored`, async (t) => {
    let written: ReplyStream | undefined;
    let signal: AbortSignal | undefined;
    const route = writing((stream, given) => {
      written = stream;
      signal = given;
      stream.write('first');
    });
    const { port, server, bugs } = await start(t, adapter, { routes: [route] });
    const client = await RawClient.connect(t, port);
    client.send(post);
    await client.until(/first/);
    t.equal(signal?.aborted, false);
    client.socket.destroy();
    await eventually(() => signal?.aborted === true, 'the signal aborts');
    written?.write('more');
    written?.end();
    await nextTurn();
    t.strictSame(bugs, []);
    await server.close(5_000);
  });

  t.test(`${adapter}: cut() makes the answer incomplete for the client`, async (t) => {
    const route = writing((stream) => {
      stream.write('half');
      setImmediate(() => stream.cut());
    });
    const { port } = await start(t, adapter, { routes: [route] });
    const client = await RawClient.connect(t, port);
    client.send(post);
    t.notOk(unchunked(await client.untilClosed()).isWhole);
  });

  t.test(`${adapter}: a slow reader gets every byte in order`, async (t) => {
    const hash = createHash('sha256');
    const lines = Array.from({ length: 6_000 }, (_, n) => `${n} ${randomBytes(350).toString('hex')}\n`);
    for (const line of lines) hash.update(line);
    const route = writing((stream) => {
      let next = 0;
      const some = () => {
        for (const until = next + 20; next < until && next < lines.length; next += 1) stream.write(lines[next] ?? '');
        if (next < lines.length) setImmediate(some);
        else stream.end();
      };
      some();
    });
    const { port } = await start(t, adapter, { routes: [route], limits: { sseBufferBytes: 64 * 1_048_576 } });
    const client = await RawClient.connect(t, port);
    const pulse = setInterval(() => {
      client.socket.pause();
      setTimeout(() => client.socket.resume(), 3);
    }, 6);
    t.teardown(() => clearInterval(pulse));
    client.socket.pause();
    client.send(post);
    setTimeout(() => client.socket.resume(), 50);
    await eventually(() => client.received.endsWith('\r\n0\r\n\r\n'), 'the end');
    clearInterval(pulse);
    const { chunks, isWhole } = unchunked(client.received);
    t.ok(isWhole, 'the framing is sound');
    const body = chunks.join('').replace(/^\n+|\n\n+/gm, (empty) => (empty.startsWith('\n\n') ? '\n' : ''));
    t.equal(createHash('sha256').update(body).digest('hex'), hash.digest('hex'));
  });

  t.test(`${adapter}: a stalled reader is disconnected at the bound`, async (t) => {
    let signal: AbortSignal | undefined;
    let pieces = 0;
    const route = writing((stream, given) => {
      signal = given;
      const piece = 'x'.repeat(65_536);
      const more = () => {
        if (given.aborted || pieces > 2_000) return;
        stream.write(piece);
        pieces += 1;
        setImmediate(more);
      };
      more();
    });
    const { port, server } = await start(t, adapter, { routes: [route], limits: { sseBufferBytes: 262_144 } });
    const client = await RawClient.connect(t, port);
    client.socket.pause();
    client.send(post);
    await eventually(() => signal?.aborted === true, 'the reader is cut');
    t.ok(pieces < 2_000, `after ${pieces * 64} KiB`);
    client.socket.destroy();
    await eventually(() => server.stats().connections === 0, 'nothing is left');
  });

  t.test(`${adapter}: a graceful close completes an answer`, async (t) => {
    let written: ReplyStream | undefined;
    const route = writing((stream) => {
      written = stream;
      stream.write('begun ');
    });
    const { port, server } = await start(t, adapter, { routes: [route] });
    const client = await RawClient.connect(t, port);
    client.send(post);
    await client.until(/begun/);
    const closed = server.close(60_000);
    await nextTurn();
    written?.write('and done');
    written?.end();
    await closed;
    t.equal(unchunked(await client.untilClosed()).chunks.join(''), 'begun and done');
  });

  t.test(`${adapter}: a bug in the opening of an answer is reported and cuts the answer`, async (t) => {
    const route = writing(() => {
      throw new Error('broken');
    });
    const { port, bugs, server } = await start(t, adapter, { routes: [route] });
    const client = await RawClient.connect(t, port);
    client.send(post);
    await client.untilClosed();
    t.equal(bugs.length, 1);
    await server.close(5_000);
  });

  t.test(`${adapter}: a guard runs before the routes for every path and method`, async (t) => {
    const { port } = await start(t, adapter, {
      routes: [{ method: 'GET', path: '/open', handler: () => text(200, 'open') }],
      guard: ({ path }) => {
        if (path !== '/open') throw new HttpError(401, 'unauthorized', 'no');
      },
      errorBody: ({ code, path }) => ({ error: { code: `${code} ${path}` } }),
    });
    t.equal((await exchange(port, rawRequest('GET', '/open'))).body, 'open');
    for (const method of ['GET', 'POST', 'PUT', 'OPTIONS']) {
      const { status, body } = await exchange(port, rawRequest(method, '/elsewhere'));
      t.equal(status, 401, method);
      t.equal(codeOf(body), 'unauthorized /elsewhere');
    }
    const { status, body } = await exchange(port, rawRequest('OPTIONS', '/open'));
    t.equal(status, 405);
    t.equal(codeOf(body), 'methodNotAllowed /open');
  });
}

suite('uws');
suite('node');
