/** Edges of the contract of `oratorio server` and `oratorio backend`, through the command line. */
import { existsSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { commands } from '../../src/cli/commands.ts';
import { marked, parseEnv } from '../../src/deploy/files/index.ts';
import { checkHost } from '../../src/deploy/index.ts';
import { type Machine, machine } from './server-setup.ts';

const host = 'hooks.oratorio.dev';
const secretName = 'ORATORIO_GITHUB_WEBHOOK_SECRET';
const secretOf = (m: Machine) => parseEnv(m.stackFile('.env')).values.get(secretName);
const automationOf = (m: Machine) => JSON.parse(m.stackFile('oratorio.config.json')).Oratorio.Automation;

t.test('regression: edge 4 automatic reviews are published exactly when write-back is on', async (t) => {
  const both = await machine(t);
  t.equal((await both.init('--no-start')).code, 0);
  t.match(automationOf(both), { AutoReviewRepositories: ['octo/app'], AutoReviewPublishEnabled: true });
  // Control of edge 13: without a host there is no gateway.
  t.notOk(existsSync(join(both.directory, 'Caddyfile')));
  t.notOk(secretOf(both));
  for (const flag of ['--no-github-writes', '--no-auto-review']) {
    const m = await machine(t);
    t.equal((await m.init('--no-start', flag)).code, 0);
    t.equal(automationOf(m).AutoReviewPublishEnabled, false, flag);
  }
});

/** Converts the stack to that of version 0.1, with the settings of the agent server in the workspace. */
function makeOld(m: Machine, settings: string): void {
  const at = (path: string) => join(m.directory, path);
  const old = m
    .stackFile('docker-compose.yml')
    .replace(/^# Managed.*\n/, '')
    .replace(/ *- \.\/agent\/\S+\n/g, '');
  writeFileSync(at('docker-compose.yml'), marked(old));
  rmSync(at('agent'), { recursive: true });
  writeFileSync(at('workspace/.oratorio/config.json'), settings, { mode: 0o640 });
}
const mounts = /\.\/agent\/home:\/data\/agent\n\s+- \.\/agent\/config\.json:\/data\/agent\/config\.json:ro/;

t.test('restart and upgrade move settings of the agent server out of the workspace', async (t) => {
  const m = await machine(t);
  t.equal((await m.init()).code, 0);
  t.match(m.stackFile('docker-compose.yml'), mounts, 'a new stack has them there');
  t.notOk(existsSync(join(m.directory, 'workspace/.oratorio/config.json')));
  for (const command of ['restart', 'upgrade']) {
    const settings = `${JSON.stringify({ ...JSON.parse(m.stackFile('agent/config.json')), Model: 'mine' })}\n`;
    makeOld(m, settings);
    t.match(await m.cli('server', 'doctor', '--offline', '--dir', m.directory), { stdout: /agent\/config\.json/ });
    t.match(await m.cli('server', command, '--yes', '--dir', m.directory), { code: 0, stderr: /agent\/config\.json/ });
    t.equal(m.stackFile('agent/config.json'), settings, command);
    t.equal(statSync(join(m.directory, 'agent/home')).mode & 0o777, 0o700);
    t.equal(m.stackFile('workspace/.oratorio/config.json'), '{}\n');
    t.match(m.stackFile('docker-compose.yml'), mounts);
    const again = await m.cli('server', command, '--yes', '--dir', m.directory);
    t.equal(again.code, 0);
    t.notMatch(again.stderr, /agent\/config\.json/, 'once');
    t.equal(m.stackFile('agent/config.json'), settings);
  }
});

t.test('old settings that are a symbolic link are not moved', async (t) => {
  const m = await machine(t);
  t.equal((await m.init('--no-start')).code, 0);
  makeOld(m, '{}');
  const file = join(m.directory, 'workspace/.oratorio/config.json');
  rmSync(file);
  symlinkSync(m.file('secret-of-the-operator', 'canary'), file);
  const before = m.stackFile('docker-compose.yml');
  const ended = await m.cli('server', 'restart', '--dir', m.directory);
  t.not(ended.code, 0);
  t.match(ended.stderr, /workspace\/\.oratorio\/config\.json is a symbolic link/);
  t.notOk(existsSync(join(m.directory, 'agent')));
  t.equal(m.stackFile('docker-compose.yml'), before);
  // The directory itself may be a link, too.
  rmSync(join(m.directory, 'workspace/.oratorio'), { recursive: true });
  symlinkSync(m.home, join(m.directory, 'workspace/.oratorio'));
  m.file('config.json', '{"Model":"canary"}');
  t.match(await m.cli('server', 'restart', '--dir', m.directory), { stderr: /is a symbolic link/ });
  t.notOk(existsSync(join(m.directory, 'agent')));
});

t.test('regression: edge 12 the value of --secret-file overrides .env', async (t) => {
  const m = await machine(t);
  t.equal((await m.init('--no-start')).code, 0);
  const on = (...argv: string[]) => m.cli('server', ...argv, '--dir', m.directory);
  const enable = (...argv: string[]) => on('webhook', 'enable', '--public-host', host, ...argv);
  t.equal((await enable()).code, 0);
  const made = secretOf(m);
  const given = 'a-secret-with-$HOME-and-$$-in-it';
  const changed = await enable('--secret-file', m.file('hook', `${given}\n`));
  t.match(changed, { code: 0, stderr: /Enter the new one in the App/ });
  t.not(made, given);
  t.equal(secretOf(m), given);
  t.match(m.stackFile('.env'), `${secretName}='${given}'`);
  t.notMatch(`${changed.stdout}${changed.stderr}`, given);
  t.equal((await on('webhook', 'disable', '--yes')).code, 0);
  const other = 'another-secret-after-disable';
  t.equal((await enable('--secret-file', m.file('other', other))).code, 0);
  t.equal(secretOf(m), other);
  // Control: without the option the secret stays.
  t.equal((await enable()).code, 0);
  t.equal(secretOf(m), other);
});

t.test('regression: edge 13 init --webhook-public-host --no-start writes overlay, Caddyfile and secret', async (t) => {
  const m = await machine(t);
  const ended = await m.init('--no-start', '--webhook-public-host', host);
  t.equal(ended.code, 0);
  t.match(m.stackFile('docker-compose.webhook.yml'), 'webhook-gateway');
  t.match(m.stackFile('Caddyfile'), host);
  const secret = secretOf(m) ?? '';
  t.match(secret, /^[\w-]{43}$/);
  t.equal(ended.stdout.split(secret).length, 2, 'printed once');
  t.match(ended.stdout, `https://${host}/api/v1/sources/github/webhook`);
  t.match(await m.cli('server', 'restart', '--dir', m.directory), { code: 0 });
  const { stdout } = await m.cli('server', 'webhook', 'status', '--dir', m.directory, '--json');
  t.match(JSON.parse(stdout), { isEnabled: true, hasSecret: true, gateway: /running/ });
  const given = await machine(t);
  const file = given.file('hook', 'a-secret-of-the-operator');
  t.equal((await given.init('--no-start', '--webhook-public-host', host, '--webhook-secret-file', file)).code, 0);
  t.equal(secretOf(given), 'a-secret-of-the-operator');
});

t.test('regression: edge 21 a missing settings file given by option is an error that names it', async (t) => {
  const m = await machine(t);
  const missing = join(m.home, 'nowhere.json');
  for (const ended of [
    await m.cli('backend', '--config', 'nowhere.json', '--json'),
    await m.cliWith({ ORATORIO_CONFIG_PATH: missing }, 'backend', '--json'),
  ]) {
    t.equal(ended.code, 2);
    t.match(JSON.parse(ended.stdout).error, { code: 'usage', message: missing });
  }
  // Control: the same file, once it is there, is read.
  writeFileSync(missing, '{"Oratorio":{"Server":{"Port":"x"}}}');
  const { stdout } = await m.cli('backend', '--config', missing, '--json');
  t.match(JSON.parse(stdout).error, { code: 'settingsInvalid', message: /Server\.Port/ });
});

t.test('regression: edge 27 the help of a group exits with 0, and its examples have accepted hosts', async (t) => {
  const m = await machine(t);
  for (const group of ['server', 'cron', 'task', 'server webhook']) {
    for (const argv of [
      [...group.split(' '), '--help'],
      [...group.split(' '), '-h'],
      ['help', ...group.split(' ')],
    ]) {
      // Help is written by sade, to the console.
      const printed = t.capture(console, 'log');
      const { code } = await m.cli(...argv);
      printed.restore();
      const stdout = printed()
        .map(({ args }) => args.join(' '))
        .join('\n');
      t.equal(code, 0, argv.join(' '));
      t.match(stdout, `oratorio ${group} <command>`);
      for (const { name } of commands.filter(({ name }) => name.startsWith(`${group} `))) t.match(stdout, name);
    }
  }
  t.match(await m.start(['server', '--help']).ended, { code: 0, stdout: 'oratorio server <command>' }, 'as a process');
  const hosts = commands
    .flatMap(({ examples }) => examples)
    .flatMap((example) => /--(?:webhook-)?public-host (\S+)/.exec(example)?.[1] ?? []);
  t.ok(hosts.length > 0);
  for (const each of hosts) t.equal(checkHost(each, 'production').name, each);
  // Control: a group without a subcommand is a mistake.
  t.match(await m.cli('server'), { code: 2, stderr: /needs a subcommand/ });
});
