/** The life of a stack by its commands, on a fake engine and with real git: set up, used, upgraded, without its gateway again. */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import t from 'tap';
import type { BackendStatus } from '../../src/protocol/index.ts';
import { checkSecrets, gatewayImage, image, machine } from './server-setup.ts';

// Every command runs some twenty small processes: on a loaded machine that is long.
t.setTimeout(900_000);
const m = await machine(t);
const on = (...argv: string[]) => m.cli('server', ...argv, '--dir', m.directory);
const secretInEnv = (name: string): string | undefined =>
  new RegExp(`^${name}='(.*)'$`, 'm').exec(m.stackFile('.env'))?.[1];
const backendPort = (): number => Number(secretInEnv('ORATORIO_BACKEND_PORT'));
const host = 'hooks.oratorio.dev';

t.test('--dry-run shows every step and writes nothing', async (t) => {
  const { code, stdout } = await m.init('--dry-run', '--json', '--webhook-public-host', host);
  t.equal(code, 0);
  const { plan } = JSON.parse(stdout);
  t.strictSame(Object.keys(plan), ['command', 'directory', 'onFailure', 'phases', 'notes']);
  t.strictSame(
    plan.phases.map(({ name }: { name: string }) => name),
    ['checkouts', 'files', 'ports', 'validate', 'images', 'start', 'health'],
  );
  t.match(plan.notes, [/gateway for hooks\.oratorio\.dev/]);
  t.notOk(existsSync(m.directory));
  t.strictSame(m.fake.calls('compose', 'up'), []);
});

t.test('after a failed clone the next run resumes with the stored answers', async (t) => {
  m.fake.change({ services: { backend: { is: 'exits' } } });
  const failed = await m.init('--repo', 'octo/none', '--clone-url', `octo/none=${join(m.home, 'octo/none')}`);
  t.match(failed, { code: 1, stderr: /octo\/none cannot be cloned from[\s\S]*Run it again to resume/ });
  t.strictSame(readdirSync(join(m.directory, 'workspace')), ['octo__app']);
  t.match(await on('restart'), { code: 2, stderr: /is not a review stack/ });

  const unhealthy = await m.init();
  t.match(unhealthy, { code: 9, stderr: /backend has ended[\s\S]*logs --service backend/ });
  const token = secretInEnv('ORATORIO_SERVICE_TOKEN');
  t.match(await on('add-repo', 'octo/lib'), { code: 7, stderr: /oratorio server init/ }, 'first this, then another');

  m.fake.change({ services: {} });
  // Nothing is given: model, key, App and repositories are those of the attempt before.
  const done = await on('init', '--yes', '--offline', '--image', image, '--json');
  t.match(done, { code: 0 });
  const document = JSON.parse(done.stdout);
  t.match(document, { started: true, directory: m.directory, missing: [], ingress: { isEnabled: false } });
  t.equal(document.services.length, 2);
  t.equal(secretInEnv('ORATORIO_SERVICE_TOKEN'), token, 'secrets stay');
  t.match(await m.init(), { code: 7, stderr: /is a stack already/ });
});

t.test('files with secrets are readable by their owner only', async (t) => {
  const mode = (path: string): string => (statSync(join(m.directory, path)).mode & 0o777).toString(8);
  t.equal(mode('.env'), '600');
  t.equal(mode('secrets'), '700');
  t.equal(mode('secrets/github-app.pem'), '600');
  t.equal(mode('.server'), '700');
});

t.test('status exits with 9 while the backend does not answer, and with 0 once it accepts the token', async (t) => {
  t.match(await on('status'), { code: 9, stdout: /backend does not answer/ });
  const answer: BackendStatus = {
    version: '9.9.9',
    node: process.version,
    storage: 'sqlite',
    writesEnabled: true,
    webhookReady: false,
    settingsWritable: true,
    settingsProblem: null,
    repositories: 1,
    newestEvent: 0,
    deadJobs: 0,
  };
  const server = createServer((request, response) => {
    const isOurs = request.headers.authorization === `Bearer ${secretInEnv('ORATORIO_SERVICE_TOKEN')}`;
    response.writeHead(isOurs ? 200 : 401, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
  });
  await new Promise<void>((resolve) => server.listen(backendPort(), '127.0.0.1', resolve));
  const { code, stdout } = await on('status', '--json');
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  t.equal(code, 0);
  const status = JSON.parse(stdout);
  t.strictSame(Object.keys(status), [
    ...['directory', 'isHealthy', 'services', 'missing', 'images', 'url', 'tunnel', 'backend', 'ingress', 'changes'],
    'busy',
  ]);
  t.match(status, {
    isHealthy: true,
    images: { asked: { stack: image, gateway: gatewayImage } },
    backend: { state: 'answers', status: { version: '9.9.9' } },
    changes: [{ command: 'init', outcome: 'done' }],
  });
  t.match(status.tunnel, new RegExp(`^ssh -N -L 5087:127\\.0\\.0\\.1:${backendPort()} `));
});

t.test('add-repo clones, adds and restarts the backend only, and changes nothing the second time', async (t) => {
  const before = m.fake.containers();
  const url = m.repository('octo/lib');
  t.match(await on('add-repo', 'github:octo/lib', '--clone-url', url), { code: 0, stdout: 'octo/lib is reviewed.\n' });
  t.ok(existsSync(join(m.directory, 'workspace/octo__lib/README.md')));
  t.match(m.stackFile('oratorio.config.json'), /octo\/lib[\s\S]*\/workspace\/octo__lib/);
  t.not(m.fake.containers().backend?.id, before.backend?.id);
  t.equal(m.fake.containers().agent?.id, before.agent?.id);
  const again = await on('add-repo', 'Octo/Lib', '--clone-url', url, '--json');
  t.strictSame(JSON.parse(again.stdout), {
    repository: 'octo/lib',
    workspacePath: '/workspace/octo__lib',
    changed: [],
  });
});

let webhookSecret = '';

t.test('webhook enable prints its secret once, and only then', async (t) => {
  const { code, stdout, stderr } = await on('webhook', 'enable', '--public-host', host);
  t.equal(code, 0);
  t.match(stdout, `Webhook URL     https://${host}/api/v1/sources/github/webhook`);
  webhookSecret = secretInEnv('ORATORIO_GITHUB_WEBHOOK_SECRET') ?? '';
  t.match(webhookSecret, /^[\w-]{43}$/);
  t.equal(stdout.split(webhookSecret).length, 2);
  t.match(stderr, /must lead to this machine[\s\S]*ports 80 and 443 must be open/, 'what only a person can do');
  t.match(m.stackFile('Caddyfile'), host);
  const again = await on('webhook', 'enable', '--public-host', host, '--json');
  t.strictSame(Object.keys(JSON.parse(again.stdout)), ['isEnabled', 'url', 'hasSecret', 'gateway', 'changed']);
});

t.test('webhook status prints the address without the secret', async (t) => {
  const { stdout } = await on('webhook', 'status', '--json');
  t.strictSame(JSON.parse(stdout), {
    isEnabled: true,
    url: `https://${host}/api/v1/sources/github/webhook`,
    hasSecret: true,
    gateway: 'running, healthy',
  });
});

t.test('doctor prints each check as text or JSON, and exits with 9 for a failed one', async (t) => {
  const { code, stdout } = await on('doctor', '--offline', '--only', 'files', '--only', 'env', '--json');
  const document = JSON.parse(stdout);
  t.match(document, { ok: true, failed: 0 });
  t.equal(code, 0);
  t.ok(document.checks.every(({ id }: { id: string }) => /^(files|env)\./.test(id)));
  t.match(await on('doctor', '--offline', '--only', 'backend.health'), {
    code: 9,
    stdout: /✖ backend\.health: [\s\S]*1 checks: 1 failed, 0 warned, 0 skipped/,
  });
  const { stdout: whole } = await on('doctor', '--offline');
  const skips = whole.match(/^ *- /gm)?.length ?? 0;
  t.match(whole, new RegExp(`, ${skips} skipped`), 'regression: the sum counts skipped checks');
});

t.test('logs prints all services or one, also as JSON', async (t) => {
  t.match(await on('logs'), { code: 0, stdout: /agent \| agent is ready[\s\S]*gateway \| webhook-gateway is ready/ });
  const { stdout } = await on('logs', '--service', 'backend', '--tail', '5', '--json');
  t.strictSame(JSON.parse(stdout), { service: 'backend', line: 'backend is ready' });
});

t.test('restart recreates the named services', async (t) => {
  const before = m.fake.containers();
  const { code, stdout } = await on('restart', '--service', 'agent', '--json');
  t.equal(code, 0);
  t.match(JSON.parse(stdout), { state: 'healthy', changed: Array });
  t.not(m.fake.containers().agent?.id, before.agent?.id);
  t.equal(m.fake.containers().backend?.id, before.backend?.id);
});

t.test('an upgrade to a broken image restores settings and images and exits with 9', async (t) => {
  const [env, record] = [m.stackFile('.env'), m.stackFile('.server/images.json')];
  const before = m.fake.containers();
  m.fake.change({ registry: ['oratorio-test:2', gatewayImage], brokenImages: ['oratorio-test:2'] });
  const { code, stderr } = await on('upgrade', '--image', 'oratorio-test:2');
  t.equal(code, 9);
  t.match(stderr, /All changes are undone[\s\S]*Read its log/);
  t.equal(m.stackFile('.env'), env);
  t.equal(m.stackFile('.server/images.json'), record);
  const after = m.fake.containers();
  for (const service of ['agent', 'backend', 'webhook-gateway'] as const)
    t.match(after[service], { status: 'running', imageId: before[service]?.imageId });
});

t.test('upgrade pins the new images by digest', async (t) => {
  m.fake.change({ brokenImages: [] });
  t.match(await on('upgrade', '--image', 'oratorio-test:2', '--json'), { code: 0, stdout: /"state":"healthy"/ });
  t.match(secretInEnv('ORATORIO_IMAGE'), /^oratorio-test@sha256:/);
  t.match(JSON.parse(m.stackFile('.server/images.json')), { asked: { stack: 'oratorio-test:2' } });
  const { stdout } = await on('upgrade', '--check', '--json');
  t.match(JSON.parse(stdout), { isNewer: false, images: [{ what: 'stack' }, { what: 'gateway' }] });
});

t.test('webhook disable removes the gateway with its files and keeps the secret', async (t) => {
  t.match(await on('webhook', 'disable'), { code: 0, stdout: /The gateway is removed/ });
  for (const file of ['Caddyfile', 'docker-compose.webhook.yml']) t.notOk(existsSync(join(m.directory, file)));
  t.strictSame(Object.keys(m.fake.containers()).sort(), ['agent', 'backend']);
  t.match(await on('webhook', 'disable'), { code: 0, stdout: 'There was no gateway.\n' });
  t.match(await on('restart', '--service', 'webhook-gateway'), { code: 2, stderr: /has no webhook-gateway/ });
  t.equal(secretInEnv('ORATORIO_GITHUB_WEBHOOK_SECRET'), webhookSecret);
});

t.test('no output, public file or argument has a secret', async (t) => {
  checkSecrets(t, m, [webhookSecret], [webhookSecret]);
});
