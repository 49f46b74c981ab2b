import { createHmac } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as pause } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { codeOf, RawClient, rawRequest } from '../../http/support.ts';
import { type Backend, type Place, place, start } from './process.ts';

/** The signature that GitHub publishes for testing: "Validating webhook deliveries". */
const published = {
  secret: "It's a Secret to Everybody",
  body: 'Hello, World!',
  signature: 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17',
};
const webhook = '/api/v1/sources/github/webhook';

const ask = (url: string, path: string, token?: string, init: RequestInit = {}) =>
  fetch(`${url}${path}`, { ...init, headers: { ...(token && { authorization: `Bearer ${token}` }), ...init.headers } });

/** A delivery as GitHub sends it. */
function deliver(
  url: string,
  body: string,
  { secret, id = 'd-1', event = 'pull_request' }: { secret: string; id?: string; event?: string },
) {
  const signature = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
  return ask(url, webhook, undefined, {
    method: 'POST',
    body,
    headers: {
      'content-type': 'application/json',
      'x-github-event': event,
      'x-github-delivery': id,
      'x-hub-signature-256': signature,
    },
  });
}

const pull = JSON.stringify({
  action: 'opened',
  repository: { full_name: 'octo/hello', html_url: 'https://github.com/octo/hello' },
  pull_request: { number: 7 },
  sender: { login: 'alice' },
});
const rows = ({ state }: Place, sql: string) => {
  const database = new DatabaseSync(join(state, 'backend.db'), { readOnly: true });
  try {
    return database.prepare(sql).all();
  } finally {
    database.close();
  }
};

t.test(
  'a new backend makes its state private, serves clients with its token, and leaves nothing after SIGTERM',
  async (t) => {
    const here = place(t);
    const backend = start(t, here);
    const { url, pid } = await backend.ready;
    t.equal(pid, backend.child.pid);
    t.equal(statSync(here.state).mode & 0o777, 0o700);
    for (const file of readdirSync(here.state)) t.equal(statSync(join(here.state, file)).mode & 0o077, 0, file);

    const health = await ask(url, '/health');
    t.equal(health.status, 200);
    t.match(await health.json(), { service: 'oratorio', status: 'ok' });
    for (const path of ['/api/v1/status', '/api/v1/metrics', '/api/v1/inspect', '/api/v1/dead-jobs']) {
      t.equal((await ask(url, path)).status, 401, path);
      t.equal((await ask(url, path, 'a-wrong-token')).status, 401, path);
    }
    t.match(await (await ask(url, '/api/v1/status', here.token())).json(), {
      storage: 'sqlite',
      role: 'all',
      webhookReady: false,
      source: { state: 'notConfigured', code: 'appIdMissing' },
    });
    t.match(await (await ask(url, '/api/v1/metrics', here.token())).text(), /oratorio_review_info\{version="/);
    t.match(await (await ask(url, '/api/v1/machines', here.token())).text(), /review-run/);
    t.equal((await deliver(url, pull, { secret: 'any' })).status, 503, 'without a secret nothing is taken in');

    const stream = await ask(url, '/api/v1/events', here.token());
    backend.child.kill('SIGTERM');
    const { code, stderr } = await backend.ended;
    t.equal(code, 0, stderr);
    await stream.text().catch(() => '');
    t.notOk(existsSync(join(here.state, 'backend.db-wal')), 'the database was closed');
    await t.rejects(ask(url, '/health'));
    t.notMatch(stderr.replaceAll(here.home, ''), /bug|could not close/);
  },
);

t.test("deliveries: GitHub's published signature example is valid, and a delivery adds a row and a job", async (t) => {
  const here = place(t);
  here.configure({ GitHub: { WebhookSecret: published.secret, Repositories: ['octo/hello'] } });
  const backend = start(t, here);
  const { url } = await backend.ready;
  const vector = await ask(url, webhook, undefined, {
    method: 'POST',
    body: published.body,
    headers: { 'content-type': 'application/json', 'x-hub-signature-256': published.signature },
  });
  t.equal(vector.status, 400, 'it is rightly signed, and no JSON');
  t.match(await vector.json(), { error: { code: 'invalidPayload' } });
  t.equal((await deliver(url, pull, { secret: 'wrong' })).status, 403);
  t.same(rows(here, 'select * from deliveries'), []);
  t.equal((await deliver(url, pull, { secret: published.secret })).status, 202);
  t.match(rows(here, 'select deliveryId, redeliveries from deliveries'), [{ deliveryId: 'd-1', redeliveries: 0 }]);
  // Without credentials the pull request cannot be read: the job becomes a dead job, which is listed.
  const dead = async () => (await ask(url, '/api/v1/dead-jobs', here.token())).json();
  while ((await dead()).length === 0) await pause(50);
  t.match(await dead(), [{ kind: 'delivery', error: /^appIdMissing: / }]);
  t.match(rows(here, 'select outcome, reason from deliveries'), [{ outcome: 'failed', reason: 'appIdMissing' }]);
  t.equal((await deliver(url, pull, { secret: published.secret })).status, 202, 'a failed one is judged again');
  t.match(rows(here, 'select deliveryId, redeliveries from deliveries'), [{ deliveryId: 'd-1', redeliveries: 1 }]);
  backend.child.kill('SIGINT');
  t.equal((await backend.ended).code, 0);
});

t.test('changed settings in the file apply at once', async (t) => {
  const here = place(t);
  here.configure({});
  const backend = start(t, here);
  const { url } = await backend.ready;
  t.equal((await deliver(url, pull, { secret: 'new secret' })).status, 503);
  here.configure({ GitHub: { WebhookSecret: 'new secret', Repositories: ['octo/hello'] } });
  while ((await deliver(url, pull, { secret: 'new secret' })).status === 503) await pause(50);
  const sources = await (await ask(url, '/api/v1/sources', here.token())).json();
  t.match(sources, [{ repositoryKey: 'github:github.com/octo/hello' }]);
  writeFileSync(here.config, '{ "Oratorio": { "Review": { "MaxFindings": "many" } } }');
  const problem = async () => (await (await ask(url, '/api/v1/status', here.token())).json()).settingsProblem;
  while ((await problem()) === null) await pause(50);
  t.match(await problem(), /MaxFindings/);
  t.equal((await deliver(url, pull, { secret: 'new secret', id: 'd-2' })).status, 202, 'those of before hold');
});

t.test('an error names the next step and contains no secret', async (t) => {
  const here = place(t);
  const secret = 'a-very-secret-secret';
  here.configure({ GitHub: { WebhookSecret: secret }, Review: { MaxFindings: 0 } });
  const invalid = await start(t, here).ended;
  t.equal(invalid.code, 1);
  t.match(JSON.parse(invalid.stdout), { error: { code: 'settingsInvalid', message: /MaxFindings/ } });
  here.configure({ GitHub: { WebhookSecret: secret, AppId: 7, PrivateKey: 'no key' } });
  const taken = start(t, here);
  const { url } = await taken.ready;
  const other = place(t);
  const { port } = new URL(url);
  const [inUse, second] = await Promise.all([start(t, other, ['--port', port]).ended, start(t, here).ended]);
  t.equal(second.code, 1);
  t.match(JSON.parse(second.stdout), { error: { code: 'alreadyRunning' } });
  t.match(second.stderr, /--state/);
  t.match(JSON.parse(inUse.stdout), { error: { code: 'addressInUse' } });
  t.match(inUse.stderr, /--port/);
  const unreachable = place(t);
  const database = await start(t, unreachable, [], {
    Oratorio__Storage__ConnectionString: `postgres://me:${secret}@127.0.0.1:1/none`,
  }).ended;
  t.match(JSON.parse(database.stdout), { error: { code: 'databaseUnusable' } });
  t.equal((await ask(url, '/health')).status, 200, 'none of them disturbs the one that runs');
  const status = await (await ask(url, '/api/v1/status', here.token())).text();
  t.match(status, /privateKeyInvalid/);
  const settings = await (await ask(url, '/api/v1/settings/diagnostics', here.token())).text();
  const commandLine = existsSync('/proc') ? readFileSync(`/proc/${taken.child.pid}/cmdline`, 'utf8') : '';
  taken.child.kill('SIGTERM');
  const { stderr, stdout } = await taken.ended;
  for (const text of [
    stderr,
    stdout,
    status,
    settings,
    commandLine,
    invalid.stderr,
    database.stderr,
    database.stdout,
  ]) {
    t.notMatch(text, secret);
    t.notMatch(text, here.token());
  }
});

t.test(
  'roles: web accepts deliveries without executing jobs, worker executes jobs without accepting deliveries',
  async (t) => {
    const here = place(t);
    here.configure({ GitHub: { WebhookSecret: published.secret, Repositories: ['octo/hello'] } });
    const web = start(t, here, ['--role', 'web']);
    const { url } = await web.ready;
    t.equal((await deliver(url, pull, { secret: published.secret })).status, 202);
    t.match(rows(here, 'select attempt from jobs'), [{ attempt: 0 }]);
    web.child.kill('SIGTERM');
    t.equal((await web.ended).code, 0);

    const worker = start(t, here, ['--role', 'worker']);
    const { url: at } = await worker.ready;
    t.equal((await ask(at, '/health')).status, 200);
    t.equal((await deliver(at, pull, { secret: published.secret, id: 'd-2' })).status, 404);
    t.equal((await ask(at, '/api/v1/items', here.token())).status, 404);
    t.equal((await ask(at, '/api/v1/metrics', here.token())).status, 200);
    while (rows(here, 'select 1 from deadJobs').length === 0) await pause(50);
  },
);

/** Ends the backend. */
async function answersWhatIsInFlight(t: Test, here: Place, backend: Backend): Promise<void> {
  const { url } = await backend.ready;
  const signature = `sha256=${createHmac('sha256', published.secret).update(pull).digest('hex')}`;
  const answer = Promise.withResolvers<number>();
  const slow = request(`${url}${webhook}`, {
    method: 'POST',
    headers: {
      ...{ 'content-type': 'application/json', 'content-length': Buffer.byteLength(pull) },
      ...{ 'x-github-event': 'pull_request', 'x-github-delivery': 'd-slow', 'x-hub-signature-256': signature },
    },
  });
  slow.on('response', (response) => answer.resolve(response.statusCode ?? 0)).on('error', answer.reject);
  // The slow request has begun before the health check is answered.
  await new Promise((resolve) => slow.write(pull.slice(0, 20), resolve));
  await ask(url, '/health');
  await pause(100);
  backend.child.kill('SIGTERM');
  await pause(50);
  slow.end(pull.slice(20));
  t.equal(await answer.promise, 202);
  t.equal((await backend.ended).code, 0);
  t.match(rows(here, "select deliveryId from deliveries where deliveryId = 'd-slow'"), [{ deliveryId: 'd-slow' }]);
}

async function takesDeliveriesBesideIdleRequests(t: Test, { ready }: Backend): Promise<void> {
  const { url } = await ready;
  const { secret } = published;
  const port = Number(new URL(url).port);
  const path = '/api/v1/sources/github/webhook';
  const head = rawRequest('POST', path, {
    ...{ 'Content-Type': 'application/json', 'X-GitHub-Event': 'push', 'X-GitHub-Delivery': 'x' },
    ...{ 'X-Hub-Signature-256': `sha256=${'0'.repeat(64)}`, 'Content-Length': String(25 * 1_048_576) },
  });
  const idle = await Promise.all(
    Array.from({ length: 12 }, async () => {
      const client = await RawClient.connect(t, port);
      client.send(head);
      return client;
    }),
  );
  const deliver = (id: string, size = 0) => {
    const body = JSON.stringify({ action: 'x', filler: 'a'.repeat(size) });
    const signature = createHmac('sha256', secret).update(body).digest('hex');
    return fetch(`${url}${path}`, {
      method: 'POST',
      body,
      headers: {
        ...{ 'content-type': 'application/json', 'x-github-event': 'push', 'x-github-delivery': id },
        'x-hub-signature-256': `sha256=${signature}`,
      },
    });
  };
  t.equal((await deliver('small')).status, 202);
  t.equal((await deliver('large', 20 * 1_048_576)).status, 202);
  for (const client of idle) {
    const answer = await client.untilClosed();
    t.match(answer, /^HTTP\/1\.1 408 /, 'a body that does not begin is ended');
    t.equal(codeOf(answer.slice(answer.indexOf('\r\n\r\n') + 4)), 'requestTimeout');
  }
  // Control: a slow body that has begun is taken.
  const body = JSON.stringify({ action: 'slow' });
  const slow = await RawClient.connect(t, port);
  slow.send(
    rawRequest('POST', path, {
      ...{ 'Content-Type': 'application/json', 'X-GitHub-Event': 'push', 'X-GitHub-Delivery': 'slow' },
      ...{ 'X-Hub-Signature-256': `sha256=${createHmac('sha256', secret).update(body).digest('hex')}` },
      'Content-Length': String(body.length),
    }) + body.slice(0, 5),
  );
  slow.send(body.slice(5));
  await slow.until(/^HTTP\/1\.1 202 /);
}

async function takesDeliveriesOfProxies(t: Test, { ready }: Backend): Promise<void> {
  const { url } = await ready;
  const { secret } = published;
  const { port, host } = new URL(url);
  const body = JSON.stringify({ action: 'x' });
  const signature = createHmac('sha256', secret).update(body).digest('hex');
  const headers = [
    ...['Content-Type: application/json', 'X-GitHub-Event: push', 'X-GitHub-Delivery: of-a-proxy'],
    ...[`X-Hub-Signature-256: sha256=${signature}`, `Content-Length: ${body.length}`],
  ];
  const send = async (line: string, ...more: string[]) => {
    const client = await RawClient.connect(t, Number(port));
    client.send([line, ...more, ...headers, '', body].join('\r\n'));
    return client.untilClosed();
  };
  const path = '/api/v1/sources/github/webhook';
  t.match(await send(`POST ${path} HTTP/1.0`, `Host: ${host}`), /^HTTP\/1\.1 202 [\s\S]*queued|ignored/);
  t.match(await send(`POST ${path} HTTP/1.0`), /^HTTP\/1\.1 200 [\s\S]*duplicate/, 'without Host');
  t.match(
    await send(`POST http://${host}${path} HTTP/1.1`, `Host: ${host}`, 'Connection: close'),
    /^HTTP\/1\.1 200 [\s\S]*duplicate/,
  );
  t.match(
    await send(`POST http://evil.example${path} HTTP/1.1`, `Host: ${host}`, 'Connection: close'),
    /^HTTP\/1\.1 403 /,
  );
}

t.test('one backend, with deliveries of every kind', async (t) => {
  const here = place(t);
  here.configure({ GitHub: { WebhookSecret: published.secret, Repositories: ['octo/hello'] } });
  const backend = start(t, here);
  await t.test('regression: edge 10b a proxy with HTTP/1.0 upstream can deliver', (t) =>
    takesDeliveriesOfProxies(t, backend),
  );
  await t.test('regression: M5 requests that announce 25 MiB and send nothing do not block deliveries', (t) =>
    takesDeliveriesBesideIdleRequests(t, backend),
  );
  await t.test('a request in flight at SIGTERM is answered', (t) => answersWhatIsInFlight(t, here, backend));
});
