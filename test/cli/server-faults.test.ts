/** Failures of `oratorio server`: a clear message, the right exit code, and no change that a second run cannot complete. */
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { withStackLock } from '../../src/deploy/apply/index.ts';
import { changeEnv, parseEnv } from '../../src/deploy/files/index.ts';
import { changeStack, disableChange, enableChange, type Session } from '../../src/deploy/index.ts';
import { layoutOf } from '../../src/deploy/stack/index.ts';
import { killIfThere } from '../hub/harness.ts';
import { checkSecrets, filesOf, type Machine, machine, privateKey } from './server-setup.ts';

t.setTimeout(900_000);
const host = 'hooks.oratorio.dev';
const enabling = { publicHost: host, acmeEmail: null, certificates: 'production', secret: null } as const;

const session = (m: Machine, more: Partial<Session> = {}): Session => ({
  env: m.fake.env,
  signal: new AbortController().signal,
  observe: () => undefined,
  now: () => new Date(),
  lockWaitMs: 0,
  showSecrets: () => undefined,
  hasTerminal: false,
  ...more,
});

/** A stack that was written and not started: no engine is asked for it. */
async function written(t: Test): Promise<Machine> {
  const m = await machine(t);
  t.match(await m.init('--no-start'), { code: 0, stdout: /server restart --dir/ });
  return m;
}

t.test('a missing value is named by its option when there is no terminal', async (t) => {
  const m = await machine(t);
  const all = m.initArguments('--json');
  const without = (flag: string, ...alsoWithout: string[]) =>
    all.filter((word, at) => ![flag, ...alsoWithout].some((each) => word === each || all[at - 1] === each));
  for (const [flag, argv] of [
    ['--repo', without('--repo', '--clone-url')],
    ['--provider', without('--provider')],
    ['--api-key-file', without('--api-key-file')],
    ['--model', [...without('--provider'), '--provider', 'mistral']],
    ['--endpoint', [...without('--provider'), '--provider', 'custom']],
    ['--github-app-id', without('--github-app-id')],
    ['--github-app-private-key-file', without('--github-app-private-key-file')],
  ] as const) {
    const { code, stdout } = await m.cli(...argv);
    t.equal(code, 2, flag);
    t.match(JSON.parse(stdout), { error: { code: 'usage', message: new RegExp(`${flag}\\b`), details: null } });
  }
  t.match(await m.cli('server', 'webhook', 'enable', '--yes'), { code: 2, stderr: /--public-host/ });
  t.match(await m.cli('server', 'add-repo'), { code: 2, stderr: /github:owner\/name/ });
  t.notOk(existsSync(m.directory));
});

t.test('an invalid value is refused with a reason and without the secret, and no file is written', async (t) => {
  const m = await machine(t);
  let count = 0;
  const bad = (text: string) => m.file(`bad.${++count}`, text);
  const key = (text: string) => ['--api-key-file', bad(text)];
  const pem = (text: string) => ['--github-app-private-key-file', bad(text)];
  const hook = (...more: string[]) => ['--webhook-public-host', host, ...more];
  const hookSecret = (text: string) => hook('--webhook-secret-file', bad(text));
  const table: readonly (readonly [readonly string[], RegExp])[] = [
    [key('canary-key-0\ncanary-key-1'), /more than one line/],
    [key("canary-key-'"), /quote/],
    [key('canary-key-ü'), /not printable ASCII/],
    [key(''), /empty/],
    [['--api-key-file', join(m.home, 'none')], /ENOENT/],
    [pem('canary-pem'), /no private key in PEM form/],
    [pem(privateKey().slice(0, 400)), /no private key in PEM form/],
    [hookSecret('canary-hook'), /shorter than 16/],
    [hookSecret('canary-hook-012345\ncanary-hook-678'), /more than one line/],
    [['--webhook-public-host', '10.0.0.1'], /10\.0\.0\.1/],
    [['--webhook-public-host', `https://${host}`], /https/],
    [hook('--webhook-acme-email', 'nobody'), /mail/],
    [['--webhook-acme-email', 'me@oratorio.dev'], /only for --webhook-public-host/],
    [['--repo', 'octo'], /octo/],
    [['--repo', 'octo/../app'], /octo/],
    [['--clone-url', 'octo/app'], /owner\/name=url/],
    [['--clone-url', 'octo/none=/tmp/octo/none'], /not a --repo/],
    [['--repo', 'octo/lib', '--clone-url', 'octo/lib=https://me:canary-password@github.com/octo/lib'], /credentials/],
    [['--repo', 'octo/lib', '--clone-url', 'octo/lib=https://github.com/octo/other'], /not one of octo\/lib/],
    [['--github-installation', 'octo=x'], /owner=id/],
    [['--github-app-private-key-path', '/secrets/key.pem'], /either/],
    [['--port', '99999'], /port/],
    [['--base-image', 'node'], /only for --build/],
    [['--provider', 'nobody'], /must be one of openai/],
  ];
  for (const [options, reason] of table) {
    const { code, stdout, stderr } = await m.init(...options);
    t.match({ code, stderr }, { code: 2, stderr: reason }, options.join(' '));
    t.equal(stdout, '');
  }
  t.notMatch(m.printed(), /canary/);
  t.notOk(existsSync(join(m.directory, '.env')));
  t.strictSame(m.fake.calls('compose', 'up'), []);
});

t.test('a value is stored unchanged, or refused if Compose would read it differently', async (t) => {
  const m = await machine(t);
  for (const model of ["it's", 'modèle', 'a\\b'])
    t.match(await m.init('--no-start', '--model', model), { code: 2, stderr: /ORATORIO_MODEL\b/ }, model);
  const model = 'of "$HOME" ${HOME} $$ `id` #1 %2F';
  t.match(await m.init('--no-start', '--model', model), { code: 0 });
  t.equal(parseEnv(m.stackFile('.env')).values.get('ORATORIO_MODEL'), model);
});

t.test('a directory with other files stays unchanged', async (t) => {
  const m = await machine(t);
  mkdirSync(m.directory);
  writeFileSync(join(m.directory, 'thesis.txt'), 'mine');
  t.match(await m.init(), { code: 7, stderr: /is not empty[\s\S]*--dir/ });
  for (const argv of [['restart'], ['upgrade'], ['add-repo', 'octo/app'], ['webhook', 'disable'], ['status'], ['logs']])
    t.match(await m.cli('server', ...argv, '--dir', m.directory), { code: 2, stderr: /is not a review stack/ });
  t.strictSame([...filesOf(m.directory)], [['thesis.txt', 'mine']]);
});

t.test('a missing engine, composition tool or git is named with the next step', async (t) => {
  const m = await machine(t);
  const bin = join(m.home, 'bin');
  mkdirSync(bin);
  const path = (process.env['PATH'] ?? '').split(':').map((each) => join(each, 'git'));
  symlinkSync(path.find((each) => existsSync(each)) ?? 'git', join(bin, 'git'));
  const noEngine = await m.cliWith({ PATH: bin }, ...m.initArguments('--json'));
  t.match(noEngine, { code: 7, stderr: /Docker|docker/ });
  t.match(JSON.parse(noEngine.stdout), { error: { code: 'engineMissing' } });
  t.match(await m.cliWith({ PATH: m.fake.bin }, ...m.initArguments()), { code: 7, stderr: /git is not installed/ });
  for (const [scenario, reason] of [
    [{ compose: 'none' }, /[Cc]ompose/],
    [{ engine: 'stopped' }, /not running[\s\S]*systemctl start docker/],
    [{ engine: 'forbidden' }, /group|permission/],
  ] as const) {
    m.fake.change({ compose: 'v2', engine: 'running', ...scenario });
    t.match(await m.init(), { code: 7, stderr: reason });
  }
  t.notOk(existsSync(join(m.directory, '.env')));
  const dry = await m.init('--dry-run', '--json');
  t.equal(dry.code, 0, 'regression: a dry run needs no engine');
  t.match(JSON.parse(dry.stdout).plan.notes, [/^Not possible yet: .*(group|permission)/]);
});

t.test('a taken port is refused when requested, and skipped otherwise', async (t) => {
  const m = await machine(t);
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  t.match(await m.init('--port', String(port)), { code: 7, stderr: new RegExp(`Port ${port} is used by`) });
  const other = createServer();
  // Where it is in use already, all the better.
  await new Promise<void>((resolve) => other.once('error', () => resolve()).listen(5087, '127.0.0.1', resolve));
  t.teardown(() => other.close());
  const argv = m.initArguments('--dry-run', '--dir', join(m.home, 'other'));
  const { stdout } = await m.cli(...argv.filter((word, at) => word !== '--port' && argv[at - 1] !== '--port'));
  t.match(stdout, /Checking ports \d+, \d+ and \d+/);
  t.notMatch(stdout, /Checking ports 5087,/);
});

t.test('a changed or foreign file is never overwritten', async (t) => {
  const m = await written(t);
  const path = join(m.directory, 'docker-compose.yml');
  const edited = m.stackFile('docker-compose.yml').replace('  agent:', '  agent: # mine');
  writeFileSync(path, edited);
  t.match(await m.cli('server', 'upgrade', '--dir', m.directory), { code: 7, stderr: /changed by hand/ });
  t.equal(m.stackFile('docker-compose.yml'), edited);
  writeFileSync(join(m.directory, 'Caddyfile'), 'example.org\n');
  const env = m.stackFile('.env');
  const enable = await m.cli('server', 'webhook', 'enable', '--public-host', host, '--dir', m.directory);
  t.match(enable, { code: 7, stderr: /Caddyfile was not made here/ });
  t.equal(m.stackFile('Caddyfile'), 'example.org\n');
  t.equal(m.stackFile('.env'), env);
  const disable = await m.cli('server', 'webhook', 'disable', '--dir', m.directory);
  t.match(disable, { code: 0, stderr: /Caddyfile was changed or not made here, and stays/ });
  t.equal(m.stackFile('Caddyfile'), 'example.org\n');
});

t.test('a secret file is not overwritten, and a given secret is neither printed nor changed', async (t) => {
  const m = await written(t);
  const out = m.file('out', 'mine');
  const enable = (...argv: string[]) =>
    m.cli('server', 'webhook', 'enable', '--public-host', host, '--dir', m.directory, ...argv);
  t.match(await enable('--secret-out', out), { code: 2, stderr: /is there already/ });
  rmSync(out);
  const secret = 'canary-webhook-secret-0815-0123456789';
  const given = await enable('--secret-file', m.file('hook', `${secret}\n`), '--certificates', 'internal');
  t.equal(given.code, 0);
  t.match(m.stackFile('Caddyfile'), /internal/);
  checkSecrets(t, m, [secret]);
  // The secret that the stack has is taken out by hand, and a new one written into a file.
  const without = changeEnv(m.stackFile('.env'), { ORATORIO_GITHUB_WEBHOOK_SECRET: '' });
  writeFileSync(join(m.directory, '.env'), without);
  t.match(await enable('--secret-out', out, '--json'), { code: 0 });
  const made = parseEnv(m.stackFile('.env')).values.get('ORATORIO_GITHUB_WEBHOOK_SECRET') ?? '';
  t.equal(filesOf(m.home).get('out'), `${made}\n`);
  checkSecrets(t, m, [made]);
});

t.test('a failed gateway leaves the stack running without it', async (t) => {
  const m = await machine(t, { invalidGateway: 'unrecognized directive' });
  const { code, stdout, stderr } = await m.init('--webhook-public-host', host, '--json');
  t.equal(code, 1);
  t.match(JSON.parse(stdout), { error: { code: 'gatewayInvalid', message: /unrecognized directive/ } });
  t.match(stderr, /runs without a gateway[\s\S]*webhook enable --dir \S+ --public-host hooks\.oratorio\.dev/);
  t.match(m.fake.containers(), { agent: { status: 'running' }, backend: { status: 'running' } });
  t.notOk(existsSync(join(m.directory, 'Caddyfile')));
  checkSecrets(t, m);
});

const backendStarts = 'up --detach --no-deps --force-recreate backend';
const startsOf = (m: Machine) =>
  m.fake.calls('compose', 'up', 'backend').filter(({ args }) => args.join(' ').includes(backendStarts));

/** Runs `webhook enable` as a process until it waits for the engine, forever. `hanging` are the calls that it waits for. */
async function untilItHangs(m: Machine) {
  const earlier = startsOf(m).length;
  m.fake.change({ answers: [{ when: backendStarts, hangs: true }] });
  const running = m.start(['server', 'webhook', 'enable', '--yes', '--public-host', host, '--dir', m.directory]);
  await new Promise<void>((resolve, reject) => {
    let output = '';
    running.child.stderr?.on('data', (text: string) => {
      output += text;
      if (output.includes('Starting the gateway')) resolve();
    });
    running.child.once('close', () => reject(new Error(`It has ended: ${output}`)));
  });
  // The hanging child is in the list of calls once it runs and can be ended.
  while (startsOf(m).length === earlier) await pause(10);
  return { ...running, hanging: () => startsOf(m).slice(earlier) };
}

t.test('refused commands do not change a stack', async (t) => {
  const m = await written(t);

  t.test('the second of two concurrent commands names the one that holds the lock', async (t) => {
    await withStackLock(
      layoutOf(m.directory),
      { command: 'upgrade', waitMs: 0, signal: new AbortController().signal },
      async () => {
        await t.rejects(changeStack(disableChange(m.directory), session(m)), {
          code: 'stackLocked',
          message: /upgrade/,
        });
      },
    );
  });

  t.test('SIGTERM during a command restores the stack and exits with 143', async (t) => {
    const env = m.stackFile('.env');
    const running = await untilItHangs(m);
    m.fake.change({ answers: [] });
    running.child.kill('SIGTERM');
    t.match(await running.ended, { code: 143, stderr: /All changes are undone[\s\S]*All changes were undone/ });
    t.equal(m.stackFile('.env'), env);
    t.strictSame(
      readdirSync(m.directory).filter((name) => /Caddyfile|webhook/.test(name)),
      [],
    );
    checkSecrets(t, m);
  });

  t.test('a secret that a killed command did not print is printed by the next run, once', async (t) => {
    const running = await untilItHangs(m);
    running.child.kill('SIGKILL');
    await running.ended;
    for (const { pid } of running.hanging()) killIfThere(pid);
    m.fake.change({ answers: [] });
    const printed: string[] = [];
    const showSecrets: Session['showSecrets'] = (secrets) => {
      printed.push(...secrets.values());
    };
    const refuse: Session['showSecrets'] = () => {
      throw new Error('the output is closed');
    };
    const change = enableChange(m.directory, enabling);
    await t.rejects(changeStack(change, session(m, { showSecrets: refuse })), { message: /output is closed/ });
    t.match(await changeStack(change, session(m, { showSecrets })), { state: 'done' });
    t.strictSame(printed, [parseEnv(m.stackFile('.env')).values.get('ORATORIO_GITHUB_WEBHOOK_SECRET')]);
    t.match(await changeStack(change, session(m, { showSecrets })), { state: 'done', reveals: [] });
    t.equal(printed.length, 1);
    checkSecrets(t, m, printed);
  });
});
