import t, { type Test } from 'tap';
import type { DoctorOptions } from '../../../src/deploy/doctor/index.ts';
import { unusedPort } from '../../ports.ts';
import { Forge } from '../../review/forge/index.ts';
import { ask, askFor, FakeEngine, makeStack, publicName, type StackOptions } from './harness.ts';

async function world(t: Test, options: StackOptions = {}) {
  const forge = await new Forge().start();
  forge.addRepository('acme', 'shop');
  t.teardown(async () => {
    await forge.stop();
    if (forge.mistakes.length > 0) throw new Error(`The forge did not answer as GitHub does: ${forge.mistakes[0]}`);
    const other = forge.requests.find(({ method }) => !['GET', 'HEAD'].includes(method));
    if (other) throw new Error(`More than read: ${other.method} ${other.path}`);
  });
  const layout = makeStack(t, {
    endpoint: forge.apiUrl,
    appId: String(forge.app.id),
    key: forge.app.privateKey,
    hasIngress: true,
    ...options,
  });
  const engine = new FakeEngine(layout);
  const look = (id: string, more: Partial<DoctorOptions> = {}) =>
    askFor(t, id, layout, { engine, isOffline: false, ...more });
  return { forge, layout, engine, look };
}

t.test('an App with the expected identity and permissions passes', async (t) => {
  const { forge, look } = await world(t);
  t.match(await look('app.identity'), { status: 'ok', saw: `Oratorio test (${forge.app.id}).` });
  t.match(await look('app.permissions'), { status: 'ok', saw: /to write reviews back/ });
  t.match(await look('app.events'), { status: 'ok' });
  t.match(await look('repo.acme/shop.installation'), { status: 'ok', saw: /^Installation \d+ grants/ });
});

t.test('permissions and events that are missing are named', async (t) => {
  const { forge, look } = await world(t);
  forge.app.permissions = { metadata: 'read', contents: 'read', pull_requests: 'read' };
  t.match(await look('app.permissions'), {
    status: 'fail',
    saw: 'Missing: pull_requests: write, issues: write, checks: write.',
    hint: /Grant them under http/,
  });
  forge.app.events = ['issue_comment', 'check_run'];
  t.match(await look('app.events'), {
    status: 'warn',
    saw: 'Not subscribed: pull_request, pull_request_review_comment.',
  });
  forge.app.events = [];
  t.match(await look('app.events'), { status: 'fail', saw: /issue_comment/ });
  const installation = [...forge.installations.values()][0];
  if (installation)
    installation.permissions = { metadata: 'read', contents: 'read', pull_requests: 'read', issues: 'read' };
  t.match(await look('repo.acme/shop.installation'), { status: 'fail', saw: /lacks pull_requests: write/ });
  if (installation) installation.isSuspended = true;
  t.match(await look('repo.acme/shop.installation'), { status: 'fail', saw: /suspended/ });
  forge.uninstall('acme');
  t.match(await look('repo.acme/shop.installation'), { status: 'fail', saw: 'The App is not installed for it.' });
});

t.test('an App that only reads needs less', async (t) => {
  const { forge, look } = await world(t, { writesEnabled: false, hasIngress: false });
  forge.app.permissions = { metadata: 'read', contents: 'read', pull_requests: 'read', issues: 'read' };
  t.match(await look('app.permissions'), { status: 'ok', saw: /to read/ });
  forge.app.events = [];
  t.match(await look('app.events'), { status: 'warn' }, 'without ingress nothing is delivered anyway');
});

t.test('an id or key that GitHub refuses fails where it is proven', async (t) => {
  const { look } = await world(t, { appId: '99' });
  t.match(await look('app.identity'), { status: 'fail', saw: /does not accept the App's id and key/ });
  const { look: offline, forge } = await world(t);
  const before = forge.requests.length;
  t.match(await offline('app.identity', { isOffline: true }), { status: 'skip' });
  t.equal(forge.requests.length, before, 'nobody was asked');
});

t.test('without a key the App is not asked, and one check says why', async (t) => {
  const { layout, engine } = await world(t, { key: 'none' });
  const results = await ask(t, layout, { engine, isOffline: false, only: ['app', 'key', 'ingress.hook'] });
  t.match(results.get('key.file'), { status: 'fail' });
  for (const id of ['app.identity', 'ingress.hook']) t.match(results.get(id), { status: 'skip', saw: /id or the key/ });
});

t.test('the webhook at GitHub is that of the gateway', async (t) => {
  const { forge, look } = await world(t);
  const url = `https://${publicName}/api/v1/sources/github/webhook`;
  forge.app.hook = { url, secret: 'x', contentType: 'json' };
  t.match(await look('ingress.hook'), { status: 'ok' });
  forge.app.hook = { url: 'https://canary:canary@old.example.test/hook?key=canary', secret: '', contentType: 'form' };
  const result = await look('ingress.hook');
  t.match(result, {
    status: 'fail',
    saw: 'It delivers to https://old.example.test/hook; It delivers forms; It has no secret',
  });
  t.notMatch(JSON.stringify(result), /canary/);
});

t.test('failed deliveries are reported with their codes and the meaning of these', async (t) => {
  const { forge, look } = await world(t);
  t.match(await look('ingress.deliveries'), { status: 'ok', saw: /nothing lately/ });
  const other = await new Forge().start();
  t.teardown(() => other.stop());
  forge.app.hook = { url: `${other.url}/hook`, secret: 'x', contentType: 'json' };
  await forge.deliver('ping', {});
  // No process listens there.
  forge.app.hook = { ...forge.app.hook, url: `http://127.0.0.1:${await unusedPort()}/hook` };
  await forge.deliver('ping', {});
  t.match(await look('ingress.deliveries'), {
    status: 'fail',
    saw: '2 of the last 2 did not arrive (no connection, 404).',
    hint: /could not connect.*Redeliver/,
  });
});

t.test('a clock that differs from that of GitHub is reported', async (t) => {
  const { forge, look } = await world(t);
  t.match(await look('host.clock'), { status: 'ok' });
  forge.clockOffsetMs = -45_000;
  t.match(await look('host.clock'), { status: 'warn', saw: /^The clock is 4\d s fast\.$/ });
  forge.clockOffsetMs = 300_000;
  t.match(await look('host.clock'), { status: 'fail', saw: /s slow\.$/, hint: /set-ntp/ });
  await forge.stop();
  t.match(await look('host.clock'), { status: 'fail', saw: /cannot be reached/, hint: /reaches GitHub/ });
});
