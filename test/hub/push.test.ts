/** Web Push against a push service that the test brings: it decrypts messages (RFC 8291) and proves the sender (RFC 8292). */
import { execFileSync } from 'node:child_process';
import { createDecipheriv, createECDH, createPublicKey, hkdfSync, randomBytes, verify } from 'node:crypto';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { NotificationChannelContext } from '../../machines/index.ts';
import { Notices, type PushNetwork, WebPush } from '../../src/hub/notices/index.ts';
import { parseEndpoint, publicAddresses, publicInternet } from '../../src/hub/notices/push/network.ts';
import { createLogger } from '../../src/log/index.ts';
import { maxPushSubscriptions, type PushSubscribeInput } from '../../src/protocol/index.ts';
import { temporaryDirectory } from './harness.ts';

const directory = temporaryDirectory(t, 'oratorio-push-');
const [keyFile, certFile] = [join(directory, 'key.pem'), join(directory, 'cert.pem')];
execFileSync(
  'openssl',
  [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'],
    ...['-keyout', keyFile, '-out', certFile, '-subj', '/CN=push', '-addext', 'subjectAltName=DNS:push.example'],
  ],
  { stdio: 'ignore' },
);
const cert = readFileSync(certFile, 'utf8');

interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly path: string;
  readonly body: Buffer;
}

/** A push service: answers with the statuses in turn, then 201. */
async function pushService(t: Test, ...statuses: readonly number[]) {
  const seen: Received[] = [];
  const left = [...statuses];
  const server = createServer({ key: readFileSync(keyFile), cert }, async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    seen.push({ headers: request.headers, path: request.url ?? '', body: Buffer.concat(parts) });
    const status = left.shift() ?? 201;
    const upgrade = status === 101 ? { connection: 'upgrade', upgrade: 'other' } : {};
    const headers = { 'retry-after': '0', location: 'https://127.0.0.1/', ...upgrade };
    response.writeHead(status, headers).end('{"secret":"echo"}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const network: PushNetwork = {
    resolve: async (host) => [{ address: host === 'inside.example' ? '10.0.0.7' : '127.0.0.1', family: 4 }],
    isPublic: (address) => address === '127.0.0.1',
    request: { port, ca: cert },
  };
  return { seen, network };
}

/** A browser that subscribes: it has the only key that decrypts. */
function browser(endpoint = 'https://push.example/send/1') {
  const own = createECDH('prime256v1');
  own.generateKeys();
  const auth = randomBytes(16);
  const subscription: PushSubscribeInput = {
    endpoint,
    keys: { p256dh: own.getPublicKey('base64url'), auth: auth.toString('base64url') },
  };
  return {
    subscription,
    decrypt(body: Buffer): unknown {
      const [salt, senderKey] = [body.subarray(0, 16), body.subarray(21, 21 + body.readUInt8(20))];
      const derive = (secret: Uint8Array, salted: Uint8Array, info: Buffer, bytes: number) =>
        Buffer.from(hkdfSync('sha256', secret, salted, info, bytes));
      const info = Buffer.concat([Buffer.from('WebPush: info\0'), own.getPublicKey(), senderKey]);
      const secret = derive(own.computeSecret(senderKey), auth, info, 32);
      const key = derive(secret, salt, Buffer.from('Content-Encoding: aes128gcm\0'), 16);
      const nonce = derive(secret, salt, Buffer.from('Content-Encoding: nonce\0'), 12);
      const record = body.subarray(21 + senderKey.length);
      const decipher = createDecipheriv('aes-128-gcm', key, nonce);
      decipher.setAuthTag(record.subarray(-16));
      const padded = Buffer.concat([decipher.update(record.subarray(0, -16)), decipher.final()]);
      return JSON.parse(padded.subarray(0, padded.lastIndexOf(2)).toString());
    },
  };
}

function hubOf(t: Test, network: PushNetwork, statePath = temporaryDirectory(t, 'oratorio-push-'), subject = '') {
  const lines: string[] = [];
  const contexts: (NotificationChannelContext & { readonly isClosed: boolean })[] = [];
  const settled: (() => void)[] = [];
  const stream = { write: (text: string) => lines.push(text) };
  const logger = createLogger({ name: 'test', level: 'debug', stream, pretty: false });
  const notices = new Notices({
    pageUrl: () => 'http://127.0.0.1:7717',
    seed: () => 1,
    observe: (actor) =>
      actor.subscribe(({ context, value }) => {
        contexts.push({ ...context, isClosed: value === 'closed' });
        for (const wake of settled.splice(0)) wake();
      }),
    logger,
  });
  t.teardown(() => notices.closeAll());
  const push = new WebPush({ statePath, notices, subject, network: async () => network, logger });
  return {
    ...{ notices, push, lines, statePath },
    async until(isSo: (context: NotificationChannelContext & { readonly isClosed: boolean }) => boolean) {
      for (;;) {
        const found = contexts.find(isSo);
        if (found) return found;
        await new Promise<void>((resolve) => settled.push(resolve));
      }
    },
  };
}

const request = (requestId = 'approval_1') => ({
  ...{ workspaceId: 'aaaabbbbccccdddd', requestId, threadId: 'thread_1', tool: 'Exec', operation: 'run' },
  ...{ actionUrl: '/w/aaaabbbbccccdddd/#/chat/thread_1', expiresAt: new Date(Date.now() + 300_000).toISOString() },
});

const stored = (statePath: string) => JSON.parse(readFileSync(join(statePath, 'push.json'), 'utf8'));

t.test(
  'regression: H46 a browser alone can read its notice, which links to the request and names no command',
  async (t) => {
    const { seen, network } = await pushService(t);
    const { notices, push, until } = hubOf(t, network, undefined, 'mailto:me@example.com');
    const own = browser();
    await push.subscribe(own.subscription);
    notices.added('site\u202e', request('approval/1'));
    await until(({ delivered }) => delivered === 1);
    const [{ headers, path, body } = { headers: {}, path: '', body: Buffer.alloc(0) }] = seen;
    t.match(own.decrypt(body), {
      id: 'aaaabbbbccccdddd/approval/1',
      title: /^site.* waits for an answer$/,
      body: 'Exec: run',
      path: '/#/inbox/aaaabbbbccccdddd/approval%2F1',
    });
    t.notMatch(JSON.stringify(own.decrypt(body)), /\u202e/, 'no character that hides others');
    t.throws(() => browser().decrypt(body), 'another browser cannot');
    t.match(headers, { 'content-encoding': 'aes128gcm', urgency: 'high', topic: /^[\w-]{32}$/ });
    const ttl = Number(headers['ttl']);
    t.ok(ttl > 0 && ttl <= 300, `the service holds it until the request declines itself: ${ttl} s`);
    t.equal(path, '/send/1');

    const [, token = '', key = ''] = /^vapid t=([\w.-]+), k=([\w-]+)$/.exec(headers.authorization ?? '') ?? [];
    t.equal(key, push.info().publicKey);
    const [head = '', claims = '', signature = ''] = token.split('.');
    const point = Buffer.from(key, 'base64url');
    const [x, y] = [point.subarray(1, 33).toString('base64url'), point.subarray(33).toString('base64url')];
    const jwk = createPublicKey({ key: { kty: 'EC', crv: 'P-256', x, y }, format: 'jwk' });
    const options = { key: jwk, dsaEncoding: 'ieee-p1363' } as const;
    t.ok(verify('sha256', Buffer.from(`${head}.${claims}`), options, Buffer.from(signature, 'base64url')), 'signed');
    t.match(JSON.parse(Buffer.from(claims, 'base64url').toString()), {
      aud: 'https://push.example',
      sub: 'mailto:me@example.com',
    });
  },
);

t.test('key and subscriptions are private, survive the Hub, and are made once', async (t) => {
  const { seen, network } = await pushService(t);
  const first = hubOf(t, network);
  const own = browser();
  const id = await first.push.subscribe(own.subscription);
  t.equal(await first.push.subscribe(own.subscription), id, 'the same again is the same');
  t.match(first.push.info(), { subscriptions: 1 });
  const { publicKey } = first.push.info();
  for (const name of ['push.json', 'push-key.json'])
    t.equal(statSync(join(first.statePath, name)).mode & 0o777, 0o600, name);
  const next = hubOf(t, network, first.statePath);
  t.same(next.push.info(), { publicKey, subscriptions: 1 });
  next.notices.added('site', request());
  await next.until(({ delivered }) => delivered === 1);
  t.match(own.decrypt(seen[0]?.body ?? Buffer.alloc(0)), { body: 'Exec: run' });
  t.equal(await next.push.unsubscribe(own.subscription.endpoint), true);
  t.equal(await next.push.unsubscribe(own.subscription.endpoint), false);
  t.same([stored(first.statePath).subscriptions, next.notices.channels], [[], []]);
});

for (const status of [404, 410])
  t.test(`a subscription that its service answers with ${status} is forgotten`, async (t) => {
    const { seen, network } = await pushService(t, status);
    const { notices, push, until, lines, statePath } = hubOf(t, network);
    await push.subscribe(browser().subscription);
    notices.added('site', request());
    await until(({ isClosed }) => isClosed);
    await push.flush();
    t.same([seen.length, stored(statePath).subscriptions, notices.channels], [1, [], []]);
    t.match(lines.join(''), /is forgotten/);
    t.notMatch(lines.join(''), /send\/1|echo/, 'the log names neither the address nor the answer');
  });

t.test('a busy service is tried again, a refusal and a redirect are not', async (t) => {
  const { seen, network } = await pushService(t, 503, 429, 201, 403, 307);
  const { notices, push, until } = hubOf(t, network);
  await push.subscribe(browser().subscription);
  notices.added('site', request('approval_1'));
  await until(({ delivered }) => delivered === 1);
  t.equal(new Set(seen.map(({ headers }) => headers['topic'])).size, 1, 'each try replaces the one before');
  notices.added('site', request('approval_2'));
  notices.added('site', request('approval_3'));
  t.match(await until(({ dropped }) => dropped === 2), { lastError: 'push.example answered 307.' });
  t.equal(seen.length, 5);
});

t.test('a service that switches protocols causes a temporary failure', async (t) => {
  const { network } = await pushService(t, 101);
  const { notices, push, until } = hubOf(t, network);
  await push.subscribe(browser().subscription);
  notices.added('site', request());
  t.match(await until(({ tries }) => tries === 1), { lastError: 'push.example could not be reached.' });
});

t.test('a service that cannot be trusted or reached is a failure that may pass', async (t) => {
  const { network } = await pushService(t);
  const { notices, push, until } = hubOf(t, { ...network, request: { port: network.request.port } });
  await push.subscribe(browser().subscription);
  notices.added('site', request());
  t.match(await until(({ tries }) => tries === 1), { lastError: 'push.example could not be reached.' });
});

t.test('regression: H10 an endpoint that is not a public push service is refused, and changes nothing', async (t) => {
  const { seen, network } = await pushService(t);
  const { notices, push, statePath } = hubOf(t, network);
  const refused = [
    ['http://push.example/', /must be an https address/],
    ['file:///etc/passwd', /must be an https address/],
    ['push', /must be an https address/],
    ['https://push.example:7717/', /neither a port nor a user/],
    ['https://me@push.example/', /neither a port nor a user/],
    ['https://inside.example/', /inside\.example, which is not on the public Internet/],
  ] as const;
  for (const [endpoint, message] of refused)
    await t.rejects(push.subscribe(browser(endpoint).subscription), { code: 'invalidRequest', message }, endpoint);
  const { keys } = browser().subscription;
  const wrong = { ...keys, p256dh: `B${'A'.repeat(86)}` };
  await t.rejects(push.subscribe({ endpoint: 'https://push.example/x', keys: wrong }), { message: /curve P-256/ });
  t.notOk(existsSync(join(statePath, 'push.json')));

  let address = '127.0.0.1';
  const rebound = hubOf(t, { ...network, resolve: async () => [{ address, family: 4 }] });
  await rebound.push.subscribe(browser('https://push.example/rebound').subscription);
  address = '169.254.169.254';
  rebound.notices.added('site', request());
  const { lastError } = await rebound.until(({ dropped }) => dropped === 1);
  t.match([lastError, seen.length], [/not on the public Internet/, 0], 'a name that leads inside later is not asked');
  t.equal(notices.channels.length, 0);
});

t.test('the addresses of this machine and its networks are not public', async (t) => {
  const network = await publicInternet();
  for (const host of ['127.0.0.1', '10.1.2.3', '169.254.169.254', '[::1]', '[fd00::1]', '[::ffff:127.0.0.1]', '0x7f.1'])
    await t.rejects(publicAddresses(parseEndpoint(`https://${host}/`), network), /not on the public Internet/, host);
  t.match(await publicAddresses(parseEndpoint('https://8.8.8.8/'), network), [{ address: '8.8.8.8' }]);
});

t.test('one browser too many is refused; a write that fails does not count', async (t) => {
  const { network } = await pushService(t);
  const { push, notices, statePath } = hubOf(t, network);
  for (let number = 0; number < maxPushSubscriptions; number += 1)
    await push.subscribe(browser(`https://push.example/send/${number}`).subscription);
  const more = browser('https://push.example/send/more').subscription;
  await t.rejects(push.subscribe(more), { code: 'invalidRequest', message: /20 browsers get notices already/ });
  t.same([stored(statePath).subscriptions.length, notices.channels.length], [20, 20]);

  const missing = hubOf(t, network, join(temporaryDirectory(t), 'missing'));
  await t.rejects(missing.push.subscribe(more), { code: 'ENOENT' });
  t.equal(missing.notices.channels.length, 0);
});

t.test('damaged files are replaced, with a warning that names the next step', async (t) => {
  const { network } = await pushService(t);
  const statePath = temporaryDirectory(t, 'oratorio-push-');
  for (const name of ['push.json', 'push-key.json']) writeFileSync(join(statePath, name), '{"endpoint":"https://x"');
  const { push, lines } = hubOf(t, network, statePath);
  t.match(push.info(), { publicKey: /^B/, subscriptions: 0 });
  t.match(lines.join(''), /open the inbox in each of them[\s\S]*turn notices on again in each browser/);
  t.notMatch(lines.join(''), /https:\/\/x/);
});
