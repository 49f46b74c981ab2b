/** Look-ups of the users at the other ends of connections, and requests that wait for one. */
import { closeSync, fstatSync, openSync } from 'node:fs';
import type { Socket } from 'node:net';
import t, { type Test } from 'tap';
import { HttpError, ownerOrKey, text } from '../../src/http/index.ts';
import { PeerLookUp, type ReadTables, type TcpRow } from '../../src/http/peer-owner.ts';
import { RawClient, rawRequest, start } from './support.ts';

const uid = 4_242;
const mapped = `${'0'.repeat(20)}ffff7f000001`;

/** A socket that the table of `rowsOf` lists, with the inode of an open file. */
function socketAt(t: Test, remotePort: number): Socket & { destroyed: boolean } {
  const fd = openSync('/dev/null', 'r');
  t.teardown(() => closeSync(fd));
  const addresses = { localAddress: '127.0.0.1', localPort: 80, remoteAddress: '127.0.0.1', remotePort };
  return { ...addresses, destroyed: false, _handle: { fd } } as unknown as Socket & { destroyed: boolean };
}

function rowsOf(port: number, inode = fstatSync(0).ino): TcpRow[] {
  const [server, client] = [`${mapped}:80`, `${mapped}:${port}`];
  return [
    { local: server, remote: client, uid: 0, inode: String(inode) },
    { local: client, remote: server, uid, inode: '9' },
  ];
}

function inode(): number {
  const fd = openSync('/dev/null', 'r');
  try {
    return fstatSync(fd).ino;
  } finally {
    closeSync(fd);
  }
}

/** Reads that the test ends, one after the other. */
class Reads {
  readonly begun: { readonly at: number; readonly end: (rows: readonly TcpRow[], workMs?: number) => void }[] = [];
  running = 0;
  most = 0;
  #changed = Promise.withResolvers<void>();

  readonly read: ReadTables = async (visit) => {
    this.running += 1;
    this.most = Math.max(this.most, this.running);
    const { promise, resolve } = Promise.withResolvers<number>();
    const end = (rows: readonly TcpRow[], workMs = 0) => {
      rows.forEach(visit);
      resolve(workMs);
    };
    this.begun.push({ at: performance.now(), end });
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
    return promise.finally(() => {
      this.running -= 1;
    });
  };

  async nth(number: number): Promise<Reads['begun'][number]> {
    for (;;) {
      const read = this.begun[number - 1];
      if (read) return read;
      await this.#changed.promise;
    }
  }
}

t.test('sockets that wait share the next read, which begins after a rest in proportion to the last', async (t) => {
  const reads = new Reads();
  const lookUp = new PeerLookUp(reads.read);
  const ports = Array.from({ length: 50 }, (_, index) => 1_000 + index);
  const found = ports.map((port) => lookUp.uidOf(socketAt(t, port)));
  const all = ports.flatMap((port) => rowsOf(port, inode()));
  const first = await reads.nth(1);
  const ended = performance.now();
  first.end(all, 20);
  const second = await reads.nth(2);
  t.ok(second.at - ended >= 79, `rested for ${second.at - ended} ms`);
  second.end(all);
  t.same(
    await Promise.all(found),
    ports.map(() => uid),
  );
  t.equal(reads.begun.length, 2, 'one read for the first, one for the others');
  t.equal(reads.most, 1);
});

t.test('a look-up is made once for each socket, and its result is known at once afterwards', async (t) => {
  const reads = new Reads();
  const lookUp = new PeerLookUp(reads.read);
  const socket = socketAt(t, 1_000);
  const asked = [lookUp.uidOf(socket), lookUp.uidOf(socket)];
  (await reads.nth(1)).end(rowsOf(1_000, inode()));
  t.same(await Promise.all(asked), [uid, uid]);
  t.equal(lookUp.uidOf(socket), uid);
  t.equal(reads.begun.length, 1);
});

t.test('regression: H4 a peer stays unknown without both rows of one read, and after failed reads', async (t) => {
  const [ours, theirs] = rowsOf(1_000, inode());
  const foreign = { ...ours, inode: '7' } as TcpRow;
  const halves = [[ours], [theirs], [foreign, theirs], [], [ours, { ...theirs, inode: '0' }]] as TcpRow[][];
  for (const rows of halves) {
    let reads = 0;
    const lookUp = new PeerLookUp(async (visit) => {
      reads += 1;
      rows.forEach(visit);
      return 0;
    });
    t.equal(await lookUp.uidOf(socketAt(t, 1_000)), undefined);
    t.equal(reads, 3, 'a table that changes can skip a row');
  }
  let turn = 0;
  const apart = new PeerLookUp(async (visit) => {
    turn += 1;
    const row = turn % 2 === 0 ? ours : theirs;
    if (row) visit(row);
    return 0;
  });
  t.equal(await apart.uidOf(socketAt(t, 1_000)), undefined, 'rows of two reads');
  const socket = socketAt(t, 1_000);
  const failing = new PeerLookUp(async () => {
    socket.destroyed = true;
    throw new Error('the table cannot be read');
  });
  t.equal(await failing.uidOf(socket), undefined);
});

t.test('a socket beyond the limit is refused while others wait, and found later', async (t) => {
  const reads = new Reads();
  const lookUp = new PeerLookUp(reads.read, 2);
  const rows = [1_000, 1_001, 1_002, 1_003].flatMap((port) => rowsOf(port, inode()));
  const first = lookUp.uidOf(socketAt(t, 1_000));
  await reads.nth(1);
  const second = lookUp.uidOf(socketAt(t, 1_001));
  const third = lookUp.uidOf(socketAt(t, 1_002));
  const late = socketAt(t, 1_003);
  t.equal(lookUp.uidOf(late), 'busy');
  (await reads.nth(1)).end(rows);
  (await reads.nth(2)).end(rows);
  t.same(await Promise.all([first, second, third]), [uid, uid, uid]);
  const again = lookUp.uidOf(late);
  (await reads.nth(3)).end(rows);
  t.equal(await again, uid);
});

t.test('answers to pipelined requests come in their order while some wait for the look-up', async (t) => {
  const auth = ownerOrKey({ key: 'the-key', keyFile: '/f' });
  const paths = ['/a', '/b', '/c', '/d'];
  const { port } = await start(t, 'node', {
    readsPeerUid: true,
    routes: paths.map((path) => ({ method: 'GET', path, auth, handler: () => text(200, `<${path}>`) })),
  });
  const key = { Authorization: 'Bearer the-key' };
  const all = paths.map((path, index) => rawRequest('GET', path, index % 2 === 0 ? {} : key)).join('');
  for (const isEnded of [false, true]) {
    const client = await RawClient.connect(t, port);
    client.socket.allowHalfOpen = true;
    client.send(all);
    if (isEnded) client.socket.end();
    const answers = (await client.until(/<\/d>/)).match(/<\/\w>|HTTP\/1\.1 \d+/g);
    const status = process.platform === 'linux' ? '200' : '401';
    t.same(
      answers?.filter((each) => each.startsWith('<')),
      process.platform === 'linux' ? ['</a>', '</b>', '</c>', '</d>'] : ['</b>', '</d>'],
    );
    t.equal(answers?.[0], `HTTP/1.1 ${status}`);
    if (isEnded) await client.untilClosed();
  }
});

/** A guard that the test decides, and the requests that it holds. */
function pendingGuard() {
  const held: ReturnType<typeof Promise.withResolvers<undefined>>[] = [];
  let asked = Promise.withResolvers<void>();
  const guard = () => {
    const decision = Promise.withResolvers<undefined>();
    held.push(decision);
    asked.resolve();
    asked = Promise.withResolvers();
    return decision.promise;
  };
  const next = async () => {
    while (held.length === 0) await asked.promise;
    const decision = held.shift();
    if (!decision) throw new Error('no request waits');
    return decision;
  };
  return { guard, next };
}

for (const adapter of ['node', 'uws'] as const) {
  t.test(`${adapter}: a request waits for its guard, and a rejection is its answer`, async (t) => {
    const { guard, next } = pendingGuard();
    let handled = 0;
    const handler = async (context: { bytes(): Promise<Uint8Array> }) => {
      handled += 1;
      return text(200, `got ${Buffer.from(await context.bytes())}`);
    };
    const { port, bugs } = await start(t, adapter, { guard, routes: [{ method: 'POST', path: '/', handler }] });
    const ask = async () => {
      const client = await RawClient.connect(t, port);
      client.send(rawRequest('POST', '/', { 'Content-Length': '4' }, 'body'));
      return { client, decision: await next() };
    };
    const admitted = await ask();
    t.equal(handled, 0);
    admitted.decision.resolve(undefined);
    t.match(await admitted.client.until(/got/), / 200 [\s\S]*got body/);
    const refused = await ask();
    refused.decision.reject(new HttpError(401, 'unauthorized', 'no'));
    t.match(await refused.client.until(/unauthorized/), /^HTTP\/1\.1 401 /);
    const failed = await ask();
    failed.decision.reject(new Error('a bug'));
    t.match(await failed.client.until(/internalError/), /^HTTP\/1\.1 500 /);
    t.equal(bugs.length, 1);
    t.equal(handled, 1, 'only the admitted request reached the handler');
  });

  t.test(`${adapter}: a request whose client leaves during the admission is not handled`, async (t) => {
    const { guard, next } = pendingGuard();
    let handled = 0;
    const handler = () => {
      handled += 1;
      return text(200, 'fine');
    };
    const { port, server } = await start(t, adapter, { guard, routes: [{ method: 'GET', path: '/', handler }] });
    const client = await RawClient.connect(t, port);
    client.send(rawRequest('GET', '/'));
    const decision = await next();
    client.socket.resetAndDestroy();
    // The graceful close waits for pending requests, and ends at once without one.
    await server.close(600_000);
    decision.resolve(undefined);
    await new Promise((resolve) => setImmediate(resolve));
    t.equal(handled, 0);
  });

  t.test(`${adapter}: a WebSocket whose auth does not decide at once is refused`, async (t) => {
    const { port, bugs } = await start(t, adapter, {
      webSockets: [
        {
          path: '/socket',
          auth: () => Promise.resolve(undefined),
          maxPayloadBytes: 1_000,
          maxBufferedBytes: 1_000,
          open: () => t.fail('the socket was opened'),
          message: () => {},
          close: () => {},
        },
      ],
    });
    const client = await RawClient.connect(t, port);
    const upgrade = { Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13' };
    client.send(rawRequest('GET', '/socket', { ...upgrade, 'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==' }));
    t.match(await client.until(/internalError/), /^HTTP\/1\.1 500 /);
    t.equal(bugs.length, 1);
  });
}
