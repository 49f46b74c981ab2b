import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { connect as connectTcp } from 'node:net';
import { connect as connectTls } from 'node:tls';
import t from 'tap';
import { defaults } from '../../../src/deploy/defaults.ts';
import { caddy26 } from '../tools.ts';
import { sendHttp2, sendRaw } from './clients.ts';
import { authorityOf, serverNameOf } from './hosts.ts';
import { combinations, deliveryHead, encrypted, http2Delivery, type Setup, setUp, sharedSetups } from './setup.ts';
import { headerOf, sha256 } from './upstream.ts';

const close = 'Connection: close';
const most = Buffer.alloc(defaults.webhookBodyBytes, 'x');
const oneMore = Buffer.alloc(defaults.webhookBodyBytes + 1, 'x');

const chunkedBody = (body: Uint8Array): (string | Uint8Array)[] => [
  `${body.length.toString(16)}\r\n`,
  body,
  '\r\n0\r\n\r\n',
];

const shared = sharedSetups(t);

t.test('a delivery reaches the backend as GitHub sent it', async (t) => {
  const sent = [
    ['User-Agent', 'GitHub-Hookshot/abc123'],
    ['Accept', '*/*'],
    ['Content-Type', 'application/json'],
    ['X-GitHub-Delivery', '72d3162e-cc78-11e3-81ab-4c9367dc0958'],
    ['X-GitHub-Event', 'issue_comment'],
    ['X-GitHub-Hook-ID', '292430182'],
    ['X-GitHub-Hook-Installation-Target-ID', '79929171'],
    ['X-GitHub-Hook-Installation-Target-Type', 'integration'],
    ['X-Hub-Signature', 'sha1=7d38cdd689735b008b3c702edd92eea23791c5f6'],
    ['X-Hub-Signature-256', 'sha256=d57c68ca6f92289e6987922ff26938930f6e66a2d161ef06abdf1859230aa23c'],
  ] as const;
  const claims = [
    ['X-Forwarded-For', '10.9.8.7'],
    ['X-Forwarded-Proto', 'gopher'],
    ['X-Forwarded-Host', 'evil.test'],
    ['Forwarded', 'for=10.9.8.7'],
    ['X-Real-IP', '10.9.8.7'],
  ] as const;
  const body = '{"utf8":"\u4e2d\u00e9","odd":"\\u0000"}\n';
  for (const combination of combinations) {
    const setup = await shared(combination);
    const headers = [...sent, ...claims].map(([name, value]) => `${name}: ${value}`);
    const length = `Content-Length: ${Buffer.byteLength(body)}`;
    const answer = await sendRaw(encrypted(setup), `${deliveryHead(setup, [...headers, length, close])}${body}`);
    t.match(answer.text, /\{"accepted":true\}/);
    const [delivery] = setup.upstream.deliveries;
    if (!delivery) throw new Error('nothing arrived');
    t.equal(delivery.sha256, sha256(body));
    const values = new Map(delivery.headers.map(([name, value]) => [name.toLowerCase(), value]));
    t.equal(values.size, delivery.headers.length, 'none stands there twice');
    for (const [name, value] of sent) t.equal(values.get(name.toLowerCase()), value, name);
    t.equal(values.get('host'), 'localhost', 'a name that the backend knows');
    t.equal(values.get('accept-encoding'), undefined);
    t.equal(values.get('x-forwarded-for'), '127.0.0.1', 'who connected, not who somebody says');
    t.equal(values.get('x-forwarded-proto'), 'https');
    t.equal(values.get('x-forwarded-host'), authorityOf(setup.host));
    t.equal(headerOf(delivery, 'forwarded') ?? headerOf(delivery, 'x-real-ip'), undefined);
  }
});

// Limits do not depend on the host: an address is served by the later version alone.
for (const combination of combinations.filter(({ host }) => host.kind !== 'ipv6')) {
  const { name, find } = combination;

  t.test(`Caddy ${name}: a request with too many headers is not delivered`, async (t) => {
    const setup = await shared(combination);
    const send = (bytes: number) =>
      sendRaw(encrypted(setup), deliveryHead(setup, [`X-Long: ${'x'.repeat(bytes)}`, 'Content-Length: 0', close]));
    t.equal((await send(8 * 1024)).status, 202);
    t.match((await send(32 * 1024)).status, /^(?:431|closed)$/);
    const long = { ...http2Delivery(setup), 'x-long': 'x'.repeat(32 * 1024) };
    t.match((await sendHttp2(encrypted(setup), long, null)).status, /^(?:431|closed)$/);
    t.equal(setup.upstream.deliveries.length, 1);
  });

  // The last on this gateway: a broken request may reach the backend's list late.
  t.test(`Caddy ${name}: 25 MiB are delivered, one byte more is not`, async (t) => {
    const setup = await shared(combination);
    const { deliveries } = setup.upstream;
    const sized = (body: Uint8Array) =>
      sendRaw(encrypted(setup), [deliveryHead(setup, [`Content-Length: ${body.length}`, close]), body]);
    const chunked = (body: Uint8Array) =>
      sendRaw(encrypted(setup), [deliveryHead(setup, ['Transfer-Encoding: chunked', close]), ...chunkedBody(body)]);
    const http2 = (body: Uint8Array) => sendHttp2(encrypted(setup), http2Delivery(setup), body);

    for (const send of [sized, chunked, http2]) t.equal((await send(most)).status, 202);
    const whole = { bytes: most.length, sha256: sha256(most), isWhole: true };
    t.match(deliveries, [whole, whole, whole]);

    for (const send of [sized, chunked, http2]) t.match((await send(oneMore)).status, /^(?:413|502|closed)$/);
    t.strictSame(
      deliveries.slice(3).filter(({ isWhole }) => isWhole),
      [],
      'what got to the backend of those was broken off',
    );
    t.equal((await sized(Buffer.from('{}'))).status, 202, 'and it goes on');
  });

  t.test(`Caddy ${name}: a connection without progress is closed`, async (t) => {
    const setup = await setUp(t, combination, { readHeader: 1, readBody: 1, idle: 1 });
    const half = deliveryHead(setup, ['Content-Length: 10']);
    // Each of these ends because the gateway ends it.
    const { http, https } = setup.gateway.ports;
    const [silent, header, body, clear, mute, hello] = await Promise.all([
      sendRaw(encrypted(setup), ''),
      sendRaw(encrypted(setup), half.slice(0, 40)),
      sendRaw(encrypted(setup), `${half}12345`),
      sendRaw({ port: http }, 'GET / HT'),
      sendRaw({ port: http }, ''),
      ended(connectTcp({ host: '127.0.0.1', port: https })),
      sendRaw(encrypted(setup, { alpn: [] }), 'POST'),
      // The HTTP/2 of 2.6 is older than Go's deadlines of streams: there the backend has to give up.
      find === caddy26 ? undefined : stalledHttp2(setup),
    ]);
    for (const answer of [silent, header, clear, mute]) t.match(answer.status, /^(?:408|400|closed)$/);
    t.not(body.status, 202);
    t.equal(hello, true);
    t.strictSame(
      setup.upstream.deliveries.filter(({ isWhole }) => isWhole),
      [],
    );
  });
}

const [oldest] = combinations;

t.test('with an unreachable backend the answer is 502, and no part of a delivery is logged', async (t) => {
  for (const combination of [oldest, combinations[2]]) {
    const setup = await setUp(t, combination);
    await setup.upstream.close();
    const headers = [
      'X-Hub-Signature-256: sha256=5ec2e7',
      'Cookie: 5ec2e7',
      'Authorization: Basic 5ec2e7',
      'X-Own: 5ec2e7',
    ];
    const body = '{"token":"5ec2e7"}';
    const all = [...headers, `Content-Length: ${body.length}`, close];
    t.equal((await sendRaw(encrypted(setup), `${deliveryHead(setup, all)}${body}`)).status, 502);
    await setup.gateway.stop();
    t.match(setup.gateway.log(), 'connection refused', 'the reason is');
    t.notMatch(setup.gateway.log(), '5ec2e7');
  }
});

/** Resolves when the other side has ended a connection on which nothing was said. */
async function ended(socket: ReturnType<typeof connectTcp>): Promise<boolean> {
  socket.on('error', () => {});
  socket.resume();
  await once(socket, 'close');
  return true;
}

/** A delivery by HTTP/2 whose body never ends. */
async function stalledHttp2({ host, gateway, ...rest }: Setup): Promise<void> {
  const options = { ca: gateway.ca, servername: serverNameOf(host), ALPNProtocols: ['h2'], rejectUnauthorized: false };
  const socket = connectTls({ host: '127.0.0.1', port: gateway.ports.https, ...options });
  // On a busy machine the gateway may end it before that, as it ends the others.
  const closed = new Promise((resolve) => socket.on('error', () => {}).once('close', resolve));
  await Promise.race([new Promise((resolve) => socket.once('secureConnect', resolve)), closed]);
  if (socket.destroyed) return;
  const session = connectHttp2('https://gateway.invalid', { createConnection: () => socket });
  session.on('error', () => {});
  const stream = session.request(http2Delivery({ host, gateway, ...rest }), { endStream: false });
  stream.on('error', () => {});
  stream.resume();
  stream.write('12345');
  await once(stream, 'close');
  session.destroy();
}
