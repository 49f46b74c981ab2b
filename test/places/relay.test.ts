import { once } from 'node:events';
import { mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { openRelayPorts, openRelaySockets, type Relay } from '../../src/places/index.ts';
import { eventually, temporaryDirectory } from '../hub/harness.ts';
import { unusedPort } from '../ports.ts';

const marker = '0d6c2f0e-0000-4000-8000-000000000001';

/** Server that echoes the text of each connection in capitals. */
async function echo(t: Test) {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('data', (data) => socket.write(data.toString().toUpperCase())).on('end', () => socket.end());
  });
  await new Promise<void>((resolve) => server.listen({ host: '127.0.0.1', port: 0 }, resolve));
  t.teardown(() => new Promise((resolve) => server.close(resolve)));
  const address = server.address();
  return typeof address === 'object' && address ? address.port : 0;
}

/** Reads all bytes until the other end closes. */
async function say(port: number, text: string): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true });
  socket.end(text);
  return allOf(socket);
}

function allOf(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    let heard = '';
    socket.on('data', (data) => {
      heard += data;
    });
    socket.on('error', () => {}).on('close', () => resolve(heard));
  });
}

/**
 * Creates both ends in one network. The outer end must listen on a different port than the inner service, so the sockets are
 * renamed between them.
 */
async function ends(t: Test, isOwnersOnly = false) {
  const directory = join(temporaryDirectory(t, 'a-directory-whose-name-is-too-long-for-a-socket-'.repeat(3)), 'run');
  const inner = await echo(t);
  const outer = await unusedPort();
  const close = (relay: Relay) => t.teardown(() => relay.close());
  close(await openRelaySockets(directory, [inner], marker));
  symlinkFor(directory, inner, outer);
  close(await openRelayPorts(directory, [{ port: outer, isOwnersOnly }], marker));
  return { directory, inner, outer };
}

const symlinkFor = (directory: string, inner: number, outer: number) =>
  process.getBuiltinModule('node:fs').renameSync(join(directory, `${inner}.sock`), join(directory, `${outer}.sock`));

t.test('bytes pass both ways, and the end of each direction is passed on', async (t) => {
  const { outer } = await ends(t);
  t.equal(await say(outer, 'hello'), 'HELLO');
  const long = 'x'.repeat(3_000_000);
  t.equal((await say(outer, long)).length, long.length);
});

t.test('an owner-only port serves a process of the owner', async (t) => {
  const { outer } = await ends(t, true);
  t.equal(await say(outer, 'hello'), 'HELLO');
});

t.test('a socket of another program receives no byte', async (t) => {
  const { directory, outer } = await ends(t);
  const path = join(directory, `${outer}.sock`);
  rmSync(path);
  const heard: string[] = [];
  const other = createServer((socket) => {
    socket.on('data', (data) => heard.push(String(data)));
    socket.write('HTTP/1.1 200 OK and many more bytes than a greeting has\r\n\r\n');
  });
  await new Promise<void>((resolve) =>
    other.listen(join('/proc/self/cwd', path).length > 100 ? short(t, directory, path) : path, resolve),
  );
  t.teardown(() => new Promise((resolve) => other.close(resolve)));
  t.equal(await say(outer, 'secret'), '');
  t.same(heard, []);
});

/** Short path of a socket in `directory`. */
function short(t: Test, directory: string, path: string): string {
  const link = join(temporaryDirectory(t), 'd');
  symlinkSync(directory, link);
  return join(link, path.slice(directory.length + 1));
}

t.test('a link in place of a socket is not followed', async (t) => {
  const { directory, outer } = await ends(t);
  const path = join(directory, `${outer}.sock`);
  rmSync(path);
  mkdirSync(join(directory, 'elsewhere'));
  symlinkSync(join(directory, 'elsewhere'), path);
  t.equal(await say(outer, 'secret'), '');
});

t.test('regression: a client that does not close after the agent server is disconnected', async (t) => {
  const directory = join(temporaryDirectory(t), 'run');
  const server = createServer((socket) => socket.end('bye'));
  await new Promise<void>((resolve) => server.listen({ host: '127.0.0.1', port: 0 }, resolve));
  t.teardown(() => server.close());
  const { port: inner } = server.address() as { port: number };
  const outer = await unusedPort();
  const relays = [await openRelaySockets(directory, [inner], marker)];
  t.teardown(() => {
    for (const relay of relays) relay.close();
  });
  symlinkFor(directory, inner, outer);
  relays.push(await openRelayPorts(directory, [{ port: outer, isOwnersOnly: false }], marker));
  const client = connect({ host: '127.0.0.1', port: outer, allowHalfOpen: true });
  client.on('error', () => {}).resume();
  await once(client, 'end');
  await eventually(() => {
    // A peer that has gone answers with a reset.
    client.write('x');
    return client.destroyed || undefined;
  }, 'the connection is closed');
});

t.test('regression: a flood of connections takes a bounded number, and a later client is served', async (t) => {
  const { outer } = await ends(t);
  const flood = Array.from({ length: 700 }, () => connect({ host: '127.0.0.1', port: outer }).on('error', () => {}));
  const closed = () => flood.filter(({ destroyed }) => destroyed).length;
  for (const each of flood) each.on('close', () => each.destroy()).resume();
  await eventually(() => closed() >= 700 - 512 || undefined, 'more are refused');
  for (const each of flood) each.destroy();
  await eventually(async () => (await say(outer, 'hello')) === 'HELLO' || undefined, 'a later client is served');
});

t.test('a taken port is reported with the error code of the system', async (t) => {
  const taken = await echo(t);
  const directory = join(temporaryDirectory(t), 'run');
  await t.rejects(openRelayPorts(directory, [{ port: taken, isOwnersOnly: false }], marker), { code: 'EADDRINUSE' });
});
