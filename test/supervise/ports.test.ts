import { once } from 'node:events';
import { createServer } from 'node:net';
import t from 'tap';
import { PortAllocator, PortUnavailableError } from '../../src/supervise/index.ts';

t.test('no port is allocated twice, also by concurrent requests', async (t) => {
  const allocator = new PortAllocator();
  const ports = await Promise.all(Array.from({ length: 400 }, () => allocator.allocate()));
  t.equal(new Set(ports).size, 400);
  t.ok(ports.every((port) => Number.isInteger(port) && port >= 1024 && port <= 65_535));
});

t.test('an allocated port is free', async () => {
  const port = await new PortAllocator().allocate();
  const server = createServer().listen(port, '127.0.0.1');
  await once(server, 'listening');
  server.close();
  await once(server, 'close');
});

t.test('ports can be allocated again after the cool-down', async (t) => {
  let now = 0;
  const allocator = new PortAllocator({ cooldownMs: 1_000, now: () => now });
  await Promise.all(Array.from({ length: 20 }, () => allocator.allocate()));
  t.equal(allocator.cooling, 20);
  now = 999;
  await allocator.allocate();
  t.equal(allocator.cooling, 21);
  now = 1_000;
  await allocator.allocate();
  t.equal(allocator.cooling, 2);
});

t.test('an exhausted allocator fails with a typed error', async (t) => {
  await t.rejects(new PortAllocator({ host: '192.0.2.1' }).allocate(), PortUnavailableError);
});
