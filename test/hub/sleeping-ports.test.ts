/** Connections to the ports of a sleeping workspace, at the moment at which the Hub stops listening. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import t from 'tap';
import { SleepingPorts } from '../../src/hub/sleeping-ports.ts';
import { defaults } from '../../src/protocol/index.ts';

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  await once(probe.close(), 'close');
  return port;
}

t.test('connections that say nothing keep no request from waking a workspace', async (t) => {
  const port = await freePort();
  const requested = Promise.withResolvers<void>();
  const sleeping = new SleepingPorts({ api: port }, requested.resolve);
  t.teardown(() => sleeping.close());
  await sleeping.ports();
  const silent = Array.from({ length: defaults.hub.wakeWaiting }, () => connect({ host: '127.0.0.1', port }));
  t.teardown(() => silent.forEach((socket) => void socket.destroy()));
  for (const socket of silent) socket.on('error', () => {}).resume();
  await Promise.all(silent.map((socket) => once(socket, 'connect')));
  const client = connect({ host: '127.0.0.1', port });
  t.teardown(() => client.destroy());
  client.write('GET / HTTP/1.1\r\n\r\n');
  const answered = once(client, 'data').then(([answer]) => t.fail(String(answer)));
  await Promise.race([requested.promise, answered]);
});

t.test('a burst of connections while the agent server begins to listen loses none', async (t) => {
  const port = await freePort();
  const sleeping = new SleepingPorts({ api: port }, () => {});
  t.teardown(() => sleeping.close());
  await sleeping.ports();
  const server = createServer((socket) => socket.on('error', () => {}).end('served'));
  t.teardown(() => server.close());
  const visit = async (): Promise<string> => {
    const socket = connect({ host: '127.0.0.1', port });
    socket.write('GET / HTTP/1.1\r\n\r\n');
    let text = '';
    for await (const chunk of socket.setEncoding('utf8')) text += chunk;
    return text;
  };
  const early = Array.from({ length: 100 }, visit);
  server.listen({ host: '127.0.0.1', port, exclusive: true, reusePort: true });
  await once(server, 'listening');
  const late = Array.from({ length: 100 }, visit);
  await sleeping.passOn({ api: `http://127.0.0.1:${port}` });
  t.same([...new Set(await Promise.all([...early, ...late]))], ['served']);
});

for (const end of ['refuse', 'close'] as const) {
  t.test(`${end}: a connection under examination does not reach the next program at the port`, async (t) => {
    const port = await freePort();
    const sleeping = new SleepingPorts({ api: port }, () => {});
    t.teardown(() => sleeping.close());
    t.strictSame(await sleeping.ports(), { api: port });
    const client = connect({ host: '127.0.0.1', port });
    client.on('error', () => {}).resume();
    const isClosed = new Promise((resolve) => client.once('close', resolve));
    await once(client, 'connect');
    client.write('GET / HTTP/1.1\r\nauthorization: Bearer secret\r\n\r\n');
    await new Promise((resolve) => setImmediate(resolve));
    sleeping[end]('it was stopped.');
    let reached = 0;
    const next = createServer((socket) => {
      reached += 1;
      socket.destroy();
    }).listen(port, '127.0.0.1');
    t.teardown(() => next.close());
    await once(next, 'listening');
    await isClosed;
    t.equal(reached, 0);
  });
}

t.test('regression: a connection to a port that the agent server no longer has reaches no other program', async (t) => {
  const port = await freePort();
  const sleeping = new SleepingPorts({ dashboard: port }, () => {});
  t.teardown(() => sleeping.close());
  await sleeping.ports();
  const client = connect({ host: '127.0.0.1', port });
  t.teardown(() => client.destroy());
  client.write('GET /?token=secret HTTP/1.1\r\n\r\n');
  await once(client, 'connect');
  let reached = 0;
  const next = createServer((socket) => {
    reached += 1;
    socket.destroy();
  }).listen({ host: '127.0.0.1', port, reusePort: true });
  t.teardown(() => next.close());
  await once(next, 'listening');
  await sleeping.passOn({ appServerWebSocket: `ws://127.0.0.1:${port === 1_024 ? 1_025 : 1_024}/ws` });
  t.match(String(await once(client, 'data')), /503 .*no longer serves this address/s);
  t.equal(reached, 0);
});
