import t from 'tap';
import { ClientAddresses } from '../../../src/review/webhook/index.ts';

const request = (remoteAddress: string, forwarded?: string) => ({
  remoteAddress,
  header: (name: string) => (name === 'x-forwarded-for' ? forwarded : undefined),
});

t.test('X-Forwarded-For is believed from loopback and configured proxies only, and only its last entry', async (t) => {
  const clients = new ClientAddresses(() => ['192.0.2.7', '2001:db8::7']);
  for (const proxy of ['127.0.0.1', '::1', '::ffff:127.0.0.1', '192.0.2.7', '::ffff:192.0.2.7', '2001:db8::7']) {
    t.equal(clients.of(request(proxy, '203.0.113.9')), '203.0.113.9', proxy);
    t.equal(clients.of(request(proxy, '10.0.0.1, 203.0.113.9')), '203.0.113.9', 'what a client wrote counts nothing');
    t.equal(clients.of(request(proxy)), proxy.replace('::ffff:', ''), 'without the header');
    t.equal(clients.of(request(proxy, 'a word')), proxy.replace('::ffff:', ''), 'not an address');
  }
  for (const client of ['192.0.2.8', '2001:db8::8', '::ffff:192.0.2.8'])
    t.equal(clients.of(request(client, '203.0.113.9')), client.replace('::ffff:', ''));
});

t.test('a proxy that is named counts once its name is resolved', async (t) => {
  const clients = new ClientAddresses(() => ['localhost', 'no-such-name.invalid']);
  await clients.resolve();
  t.equal(clients.of(request('127.0.0.1', '203.0.113.9')), '203.0.113.9');
  t.equal(
    clients.of(request('192.0.2.8', '203.0.113.9')),
    '192.0.2.8',
    'a name that does not resolve trusts no address',
  );
});
