/** Order of `oratorio server`: checks before effects, removal of the gateway, hints that work, spellings of repositories. */

import { once } from 'node:events';
import { existsSync, renameSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import t from 'tap';
import { changeEnv, parseEnv, readBackendConfig } from '../../src/deploy/files/index.ts';
import { image, machine } from './server-setup.ts';

t.setTimeout(900_000);
const host = 'hooks.oratorio.dev';
const enable = ['webhook', 'enable', '--yes', '--public-host', host];

/** One stack for all tests, each of which leaves it running. */
const m = await machine(t);
t.match(await m.init('--repo', 'Big/Cat', '--clone-url', `Big/Cat=${m.repository('Big/Cat')}`), { code: 0 });

const run = (...argv: string[]) => m.cli('server', ...argv, '--dir', m.directory);
const ids = () => Object.values(m.fake.containers()).map(({ id, status }) => `${id} ${status}`);
const stops = () => ['stop', 'rm', 'up'].map((verb) => m.fake.calls(verb).length);

t.test('checks that fail leave every service running', async (t) => {
  const [before, calls] = [ids(), stops()];
  m.fake.change({ invalidComposition: 'services must be a mapping' });
  for (const argv of [
    ['upgrade', '--yes', '--image', image],
    ['restart'],
    ['add-repo', 'octo/lib', '--clone-url', m.repository('octo/lib')],
    enable,
  ]) {
    t.match(await run(...argv), { code: 1, stderr: /services must be a mapping/ }, argv.join(' '));
    t.strictSame(ids(), before, 'all containers run on');
    t.strictSame(stops(), calls, 'no container was stopped, removed or started');
  }
  m.fake.change({ invalidComposition: '' });
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const env = m.stackFile('.env');
  writeFileSync(join(m.directory, '.env'), changeEnv(env, { ORATORIO_DASHBOARD_PORT: String(port) }));
  for (const argv of [['restart'], ['upgrade', '--yes', '--image', image]]) {
    t.match(await run(...argv), { code: 7, stderr: new RegExp(`Port ${port} is used by`) }, argv.join(' '));
    t.strictSame(ids(), before);
  }
  writeFileSync(join(m.directory, '.env'), env);
  t.match(await run('restart'), { code: 0 }, 'with good settings it restarts');
  t.notSame(ids(), before);
});

t.test('a checkout is <owner>__<repo> in the given spelling, and one of another spelling is used', async (t) => {
  t.ok(existsSync(join(m.directory, 'workspace/Big__Cat')));
  const add = (name: string, url = name) =>
    m.cli('server', 'add-repo', `github:${name}`, '--clone-url', m.repository(url), '--json', '--dir', m.directory);
  t.match(JSON.parse((await add('Foo/Bar')).stdout), { workspacePath: '/workspace/Foo__Bar' });
  const again = await add('foo/bar', 'Foo/Bar');
  t.match(JSON.parse(again.stdout), { repository: 'Foo/Bar', workspacePath: '/workspace/Foo__Bar', changed: [] });
  t.match(await add('Octo/Old'), { code: 0 });
  t.notOk(existsSync(join(m.directory, 'workspace/foo__bar')));
  const config = readBackendConfig(m.stackFile('oratorio.config.json'));
  t.strictSame(
    config.repositories.map(({ repository, workspacePath }) => [repository, workspacePath]),
    [
      ['octo/app', '/workspace/octo__app'],
      ['Big/Cat', '/workspace/Big__Cat'],
      ['Foo/Bar', '/workspace/Foo__Bar'],
      ['Octo/Old', '/workspace/Octo__Old'],
    ],
  );
});

t.test('a stopped agent server is a warning, and a failed restart does not keep the gateway', async (t) => {
  m.fake.change({ services: { agent: { is: 'exits' } } });
  t.match(await run('restart', '--json'), { code: 9, stdout: /"code":\s*"unhealthy"/ });
  t.match(await run(...enable), { code: 0, stderr: /The agent server is not running.*restart --service agent/ });
  t.match(await run('restart', '--json'), { code: 9, stdout: /"code":\s*"unhealthy"/ });
  t.match(await run('webhook', 'disable', '--yes'), { code: 0 }, 'after a failed restart');
  m.fake.change({ services: {} });
  t.match(await run('restart', '--service', 'agent'), { code: 0 }, 'the hint works');
  t.notMatch((await run(...enable)).stderr, /agent server is not running/);
});

t.test('the hints for a missing gateway image and an edited Caddyfile work', async (t) => {
  const path = join(m.directory, '.env');
  writeFileSync(path, changeEnv(m.stackFile('.env'), { ORATORIO_GATEWAY_IMAGE: 'caddy:none' }));
  const missing = await run(...enable);
  t.match(missing, { code: 1, stderr: /Set ORATORIO_GATEWAY_IMAGE in \.env[\s\S]*run the same command again/ });
  t.notMatch(missing.stderr, /--image|--build/);
  writeFileSync(path, changeEnv(m.stackFile('.env'), { ORATORIO_GATEWAY_IMAGE: image }));
  t.match(await run(...enable), { code: 0 }, 'the hint works');
  writeFileSync(join(m.directory, 'Caddyfile'), `${m.stackFile('Caddyfile')}broken {\n`);
  m.fake.change({ invalidGateway: 'unrecognized directive' });
  const { stdout } = await run('doctor', '--offline', '--json', '--only', 'ingress.caddyfile');
  const [{ hint }] = JSON.parse(stdout).checks;
  const [, from = '', to = '', words = ''] = /mv (\S+) (\S+) && oratorio (.*)$/.exec(hint) ?? [];
  m.fake.change({ invalidGateway: '' });
  renameSync(from, to);
  t.match(await m.cli(...words.split(' '), '--yes', '--dir', m.directory), { code: 0 }, hint);
});

t.test('- reads a secret from standard input', async (t) => {
  const secret = 'a-webhook-secret-0123456789';
  const feed = (argv: readonly string[]) => {
    const running = m.start(argv, { stdio: ['pipe', 'pipe', 'pipe'] });
    running.child.stdin?.end(`${secret}\n`);
    return running.ended;
  };
  t.match(await feed(['server', ...enable, '--dir', m.directory, '--secret-file', '-']), { code: 0 });
  t.equal(parseEnv(m.stackFile('.env')).values.get('ORATORIO_GITHUB_WEBHOOK_SECRET'), secret);
  t.match(await feed(['login', 'openai', '--api-key-file', '-', '--no-test', '--json']), { code: 0 });
});

t.test('webhook disable stops the gateway, also when its files were changed or made by hand', async (t) => {
  t.match(await run(...enable), { code: 0 });
  const caddyfile = m.stackFile('Caddyfile');
  writeFileSync(join(m.directory, 'Caddyfile'), `${caddyfile}# mine\n`);
  const edited = await run('webhook', 'disable', '--yes', '--json');
  t.match(edited, { code: 0, stderr: /Caddyfile was changed/ });
  t.match(JSON.parse(edited.stdout), { isEnabled: false, kept: ['Caddyfile'] });
  t.equal(m.stackFile('Caddyfile'), `${caddyfile}# mine\n`);
  t.notOk(existsSync(join(m.directory, 'docker-compose.webhook.yml')));
  t.notOk(m.fake.containers()['webhook-gateway']);
  renameSync(join(m.directory, 'Caddyfile'), join(m.directory, 'Caddyfile.mine'));
  t.match(await run(...enable), { code: 0 });
  for (const file of ['Caddyfile', 'docker-compose.webhook.yml'])
    writeFileSync(join(m.directory, file), m.stackFile(file).replace(/^# Managed.*\n/, ''));
  const byHand = await run('webhook', 'disable', '--yes');
  t.match(byHand, { code: 0, stderr: /docker-compose\.webhook\.yml was changed or not made here[\s\S]*Move it away/ });
  t.notOk(m.fake.containers()['webhook-gateway']);
  t.match(m.fake.containers(), { agent: { status: 'running' }, backend: { status: 'running' } });
});
