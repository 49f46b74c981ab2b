import { generateKeyPairSync } from 'node:crypto';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import t, { type Test } from 'tap';
import {
  type AppQuestionError,
  appKey,
  createAppClient,
  type ProofOptions,
  proveApp,
  readApp,
  readDeliveries,
  readHook,
  readInstallation,
} from '../../../src/deploy/github/index.ts';
import { missingEvents, missingPermissions, neededPermissions } from '../../../src/github/index.ts';
import { unusedPort } from '../../ports.ts';
import { Forge } from '../../review/forge/index.ts';

async function start(t: Test, prefix = '') {
  const forge = await new Forge({ prefix }).start();
  forge.addRepository('acme', 'shop');
  t.teardown(async () => {
    await forge.stop();
    if (forge.mistakes.length > 0) throw new Error(`The forge did not answer as GitHub does: ${forge.mistakes[0]}`);
    const other = forge.requests.find(({ method }) => method !== 'GET');
    if (other) throw new Error(`More than read: ${other.method} ${other.path}`);
  });
  const privateKey = appKey(forge.app.privateKey, 'The key');
  const client = createAppClient({ endpoint: forge.apiUrl, appId: forge.app.id, privateKey, timeoutMs: 20_000 });
  const proof = (more: Partial<ProofOptions> = {}) =>
    proveApp({
      endpoint: forge.apiUrl,
      appId: forge.app.id,
      privateKey: forge.app.privateKey,
      repositories: ['acme/shop'],
      isWriting: true,
      timeoutMs: 20_000,
      ...more,
    });
  return { forge, client, proof };
}

t.test('an App is read, at github.com and at Enterprise', async (t) => {
  for (const prefix of ['', '/api/v3']) {
    const { forge, client } = await start(t, prefix);
    t.match(await readApp(client), { id: forge.app.id, permissions: { contents: 'read' }, clockSkewMs: Number });
    t.match(await readInstallation(client, 'acme/shop'), { isSuspended: false });
    t.equal(await readInstallation(client, 'acme/other'), null);
  }
});

t.test('a webhook and its deliveries are read', async (t) => {
  const { forge, client } = await start(t);
  forge.app.hook = { url: 'http://127.0.0.1:1/hook', secret: 'x', contentType: 'json' };
  t.strictSame(await readHook(client), {
    url: 'http://127.0.0.1:1/hook',
    isJson: true,
    verifiesTls: true,
    hasSecret: true,
  });
  t.strictSame(await readDeliveries(client, 20), []);
  await forge.deliver('ping', {});
  t.match(await readDeliveries(client, 20), [{ event: 'ping', statusCode: 0, hasArrived: false, isMissed: true }]);
});

t.test('a delivery of which a later attempt arrived was not missed', async (t) => {
  const { client } = await fake(t, (_, response) => {
    const of = (guid: string, status_code: number) => ({
      guid,
      event: 'push',
      delivered_at: '2026-01-01T00:00:00Z',
      status_code,
    });
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify([of('a', 200), of('b', 502), of('a', 502)]));
  });
  const found = await readDeliveries(client, 20);
  t.strictSame(
    found?.map(({ isMissed }) => isMissed),
    [false, true, false],
  );
});

/** An address on which no process listens. */
const nobody = async (): Promise<string> => `http://127.0.0.1:${await unusedPort()}`;

/** Serves answers of our own, with a key that is not checked. */
async function fake(t: Test, listener: RequestListener, timeoutMs = 20_000) {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const options = { endpoint, appId: 1, privateKey: appKey(key(), 'The key'), timeoutMs };
  return { endpoint, client: createAppClient(options) };
}
let made: string | undefined;
function key(): string {
  made ??= generateKeyPairSync('rsa', { modulusLength: 2_048 })
    .privateKey.export({ type: 'pkcs1', format: 'pem' })
    .toString();
  return made;
}

t.test('each failure has a code, and shows nothing of the request', async (t) => {
  const cases: readonly (readonly [RequestListener, object, number?])[] = [
    [(_, response) => void response.writeHead(500).end('x'), { code: 'unreachable', message: /500/ }],
    [
      (_, response) =>
        void response.writeHead(403, { 'content-type': 'application/json' }).end('{"message":"no\\u001b[31m"}'),
      { code: 'refused', message: /\(403: no \[31m\)/ },
    ],
    [(_, response) => void response.end('<html>'), { code: 'invalidAnswer' }],
    [
      (_, response) => void response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
      { code: 'invalidAnswer' },
    ],
    [({ socket }) => void socket.destroy(), { code: 'unreachable' }],
    [() => {}, { code: 'timedOut', message: 'GitHub did not answer within 50 ms.' }, 50],
    [
      (_, response) => void response.end(Buffer.alloc(5 * 1024 * 1024)),
      { code: 'invalidAnswer', message: /larger than 4194304 bytes/ },
    ],
  ];
  for (const [listener, expected, timeoutMs] of cases) {
    const { client } = await fake(t, listener, timeoutMs);
    const error = await readApp(client).catch((each: unknown) => each);
    t.match(error, { name: 'AppQuestionError', ...expected });
    t.notMatch(String((error as Error).stack), /eyJ|Bearer/i, 'no token in it');
    t.notOk((error as AppQuestionError).cause, 'nothing behind it that would show more');
  }
});

t.test('missing permissions and events are listed', async (t) => {
  t.strictSame(missingPermissions({ ...neededPermissions(true) }, true), []);
  t.strictSame(missingPermissions({ ...neededPermissions(false) }, true), [
    'pull_requests: write',
    'issues: write',
    'checks: write',
  ]);
  t.strictSame(missingPermissions({ ...neededPermissions(true), contents: 'admin' }, false), [], 'more will do');
  t.strictSame(missingPermissions({}, false), [
    'contents: read',
    'metadata: read',
    'pull_requests: read',
    'issues: read',
  ]);
  t.strictSame(missingEvents(['pull_request', 'check_run']), ['issue_comment', 'pull_request_review_comment']);
});

t.test('a proof: id and key belong together, and all that is needed is granted', async (t) => {
  const { forge, proof } = await start(t);
  t.match(await proof(), { state: 'proven', app: { id: forge.app.id }, problems: [] });
  t.match(await proof({ repositories: ['acme/none', 'acme/shop'] }), {
    problems: [{ repository: 'acme/none', message: 'The App is not installed for acme/none.', isFatal: true }],
  });
  forge.app.permissions = { metadata: 'read', contents: 'read', pull_requests: 'read', issues: 'read' };
  forge.app.events = ['issue_comment'];
  t.match(await proof({ isWriting: false }), {
    problems: [{ message: /does not subscribe to pull_request/, isFatal: false }],
  });
  t.match(await proof(), { problems: [{ message: /lacks permissions: pull_requests: write/, isFatal: true }, {}] });
  forge.app.events = [];
  const installation = [...forge.installations.values()][0];
  if (installation) installation.permissions = { contents: 'read' };
  t.match(await proof({ isWriting: false }), {
    problems: [
      { message: /issue_comment/, isFatal: true },
      { repository: 'acme/shop', message: /lacks permissions: metadata: read/ },
    ],
  });
  if (installation) installation.isSuspended = true;
  t.match(await proof(), { problems: [{}, {}, { message: /is suspended/ }] });
});

t.test('a wrong pair of id and key is refused; silence proves nothing', async (t) => {
  const { proof } = await start(t);
  await t.rejects(proof({ privateKey: key() }), { name: 'DeployError', code: 'credentialsRefused', hint: /App ID/ });
  await t.rejects(proof({ appId: 9_999 }), { code: 'credentialsRefused' });
  const error = await proof({ privateKey: 'canary-not-a-key' }).catch((each: unknown) => each);
  t.match(error, { code: 'secretRefused', message: /no private key in PEM form/ });
  t.notMatch(String(error), /canary/);
  t.match(await proof({ endpoint: await nobody() }), {
    state: 'unknown',
    reason: /could not be reached: ECONNREFUSED/,
  });
});

t.test('only RSA keys of 2048 bits or more are keys of an App', async (t) => {
  const elliptic = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({
    type: 'pkcs8',
    format: 'pem',
  });
  const short = generateKeyPairSync('rsa', { modulusLength: 1_024 }).privateKey.export({
    type: 'pkcs8',
    format: 'pem',
  });
  t.throws(() => appKey(String(elliptic), 'It'), { code: 'secretRefused', message: 'It is not an RSA key.' });
  t.throws(() => appKey(String(short), 'It'), { code: 'secretRefused', message: /fewer than 2048 bits/ });
  t.match(appKey(key(), 'It'), /^-----BEGIN PRIVATE KEY-----/);
});

t.test('a stop ends the question', async (t) => {
  const stop = new AbortController();
  const { endpoint } = await fake(t, () => stop.abort());
  const options = {
    endpoint,
    appId: 1,
    privateKey: appKey(key(), 'It'),
    timeoutMs: 60_000,
    signal: stop.signal,
  };
  await t.rejects(readApp(createAppClient(options)), { name: 'AppQuestionError' });
});
