import { createHmac } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as pause } from 'node:timers/promises';
import t from 'tap';
import { type Place, place, start } from './process.ts';

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
  'a new one makes its state private, serves who has its token, and leaves nothing when it is ended',
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
    t.notMatch(stderr, /bug|could not be ended/);
  },
);

t.test('deliveries: what GitHub publishes on signatures holds, and a delivery is a row and a job', async (t) => {
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
  t.equal((await deliver(url, pull, { secret: published.secret })).status, 200, 'it is taken once');
  t.match(rows(here, 'select deliveryId, redeliveries from deliveries'), [{ deliveryId: 'd-1', redeliveries: 1 }]);
  // There are no credentials, so the pull request cannot be read: that is told, and kept to be seen.
  const dead = async () => (await ask(url, '/api/v1/dead-jobs', here.token())).json();
  while ((await dead()).length === 0) await pause(50);
  t.match(await dead(), [{ kind: 'delivery', error: /^appIdMissing: / }]);
  t.match(rows(here, 'select outcome, reason from deliveries'), [{ outcome: 'failed', reason: 'appIdMissing' }]);
  backend.child.kill('SIGINT');
  t.equal((await backend.ended).code, 0);
});

t.test('settings hold as soon as the file says so', async (t) => {
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

t.test('what cannot be is told with what to do, and no secret with it', async (t) => {
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

t.test('roles: one takes in and works on nothing, one works and takes nothing in', async (t) => {
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
});

t.test('a request that is in flight when it is told to end is answered', async (t) => {
  const here = place(t);
  here.configure({ GitHub: { WebhookSecret: published.secret, Repositories: ['octo/hello'] } });
  const backend = start(t, here);
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
  slow.write(pull.slice(0, 20));
  await ask(url, '/health');
  await pause(100);
  backend.child.kill('SIGTERM');
  await pause(50);
  slow.end(pull.slice(20));
  t.equal(await answer.promise, 202);
  t.equal((await backend.ended).code, 0);
  t.match(rows(here, 'select deliveryId from deliveries'), [{ deliveryId: 'd-slow' }]);
});
