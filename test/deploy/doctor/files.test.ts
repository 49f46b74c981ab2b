import { chmodSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import t from 'tap';
import { DeployError } from '../../../src/deploy/errors.ts';
import { changeEnv, marked } from '../../../src/deploy/files/index.ts';
import type { StackLayout } from '../../../src/deploy/layout.ts';
import { addIngress, ask, askFor, canaries, FakeEngine, makeStack, put, remove } from './harness.ts';

const noEngine = new DeployError('engineMissing', 'There is no container engine.', 'Install Docker.');

t.test('the files of a new stack pass all checks', async (t) => {
  const layout = makeStack(t);
  const results = await ask(t, layout, {
    engine: new FakeEngine(layout),
    only: ['files', 'env', 'config', 'key', 'runtime'],
  });
  for (const { id, status, saw } of results.values()) t.equal(status, 'ok', `${id}: ${saw}`);
  t.notOk(results.has('ingress.host'), 'without ingress there is nothing of it');
});

t.test('a missing file and a symbolic link are reported with a remedy', async (t) => {
  const layout = makeStack(t);
  remove(layout.compose);
  t.match(await askFor(t, 'files.present', layout, { engine: noEngine }), {
    status: 'fail',
    saw: 'docker-compose.yml is missing',
    hint: /server init/,
  });
  symlinkSync('/dev/null', layout.compose);
  t.match(await askFor(t, 'files.present', layout, { engine: noEngine }), { status: 'warn', saw: /symbolic link/ });
  remove(layout.secrets);
  writeFileSync(layout.secrets, '');
  t.match(await askFor(t, 'files.present', layout, { engine: noEngine }), {
    status: 'fail',
    saw: /secrets is not a directory/,
  });
});

t.test('a secret that others can read fails, another file only when they can write it', async (t) => {
  const layout = makeStack(t);
  chmodSync(layout.config, 0o644);
  t.match(await askFor(t, 'files.modes', layout, { engine: noEngine }), {
    status: 'warn',
    hint: `chmod 0640 ${layout.config}`,
  });
  chmodSync(layout.config, 0o646);
  t.match(await askFor(t, 'files.modes', layout, { engine: noEngine }), { status: 'fail' });
  chmodSync(layout.config, 0o640);
  for (const [path, mode] of [
    [layout.env, 0o600],
    [layout.privateKey, 0o600],
    [layout.secrets, 0o700],
  ] as const) {
    chmodSync(path, mode | 0o040);
    t.match(await askFor(t, 'files.modes', layout, { engine: noEngine }), {
      status: 'fail',
      hint: `chmod 0${mode.toString(8)} ${path}`,
    });
    chmodSync(path, mode);
  }
});

t.test('files of other users, and files that the containers cannot read, are reported', async (t) => {
  const layout = makeStack(t);
  const uid = Number(process.getuid?.());
  const set = (user: number): void =>
    put(
      layout.env,
      changeEnv(readFileSync(layout.env, 'utf8'), { ORATORIO_UID: String(user), ORATORIO_GID: String(user) }),
      0o600,
    );
  set(uid + 70_000);
  t.match(await askFor(t, 'files.owners', layout, { engine: noEngine }), {
    status: 'fail',
    saw: /cannot read secrets/,
  });
  set(uid);
  const other = uid + 1;
  const host = { uid: () => other };
  t.match(await askFor(t, 'files.owners', layout, { engine: noEngine, host }), { status: 'ok' });
  remove(layout.env);
  t.match(await askFor(t, 'files.owners', layout, { engine: noEngine }), { status: 'skip', saw: /no \.env/ });
});

t.test('a managed file that was edited, or one that is not managed, is a warning', async (t) => {
  const layout = makeStack(t, { hasIngress: true });
  t.match(await askFor(t, 'files.marker', layout, { engine: noEngine }), { status: 'ok' });
  put(layout.compose, `${readFileSync(layout.compose, 'utf8')}# mine\n`, 0o644);
  put(layout.caddyfile, 'hooks.example.test {\n}\n', 0o644);
  t.match(await askFor(t, 'files.marker', layout, { engine: noEngine }), {
    status: 'warn',
    saw: 'docker-compose.yml was edited by hand; Caddyfile was not made by oratorio server',
  });
});

t.test('overlay and Caddyfile are there both or not at all', async (t) => {
  const layout = makeStack(t);
  t.match(await askFor(t, 'files.pair', layout, { engine: noEngine }), { status: 'ok', saw: /no webhook gateway/ });
  addIngress(layout, 'hooks.example.test');
  t.match(await askFor(t, 'files.pair', layout, { engine: noEngine }), { status: 'ok' });
  remove(layout.caddyfile);
  t.match(await askFor(t, 'files.pair', layout, { engine: noEngine }), {
    status: 'fail',
    saw: 'docker-compose.webhook.yml is there and Caddyfile is not.',
    hint: /webhook enable/,
  });
});

const edit = (layout: StackLayout, changes: Record<string, string | null>): void =>
  put(layout.env, changeEnv(readFileSync(layout.env, 'utf8'), changes), 0o600);

t.test('secrets are reported as configured, missing or weak only', async (t) => {
  const layout = makeStack(t);
  t.match(await askFor(t, 'env.required', layout, { engine: noEngine }), {
    status: 'ok',
    saw: /ORATORIO_AGENT_TOKEN.*: configured\.$/,
  });
  edit(layout, { ORATORIO_AGENT_TOKEN: 'hunter2' });
  const weak = await askFor(t, 'env.required', layout, { engine: noEngine });
  t.match(weak, { status: 'warn', saw: 'ORATORIO_AGENT_TOKEN: weak' });
  t.notMatch(JSON.stringify({ ...weak, durationMs: 0 }), /hunter2|7|16 char/, 'neither the value nor its length');
  edit(layout, { ORATORIO_AGENT_TOKEN: '', COMPOSE_PROJECT_NAME: null });
  t.match(await askFor(t, 'env.required', layout, { engine: noEngine }), {
    status: 'fail',
    saw: 'COMPOSE_PROJECT_NAME: missing; ORATORIO_AGENT_TOKEN: missing',
  });
});

t.test('the webhook secret is only needed with the gateway', async (t) => {
  const layout = makeStack(t);
  edit(layout, { ORATORIO_GITHUB_WEBHOOK_SECRET: null });
  t.match(await askFor(t, 'env.required', layout, { engine: noEngine }), { status: 'ok' });
  addIngress(layout, 'hooks.example.test');
  t.match(await askFor(t, 'env.required', layout, { engine: noEngine }), {
    status: 'fail',
    saw: 'ORATORIO_GITHUB_WEBHOOK_SECRET: missing',
  });
});

t.test('without a model provider the demo model is reported', async (t) => {
  const layout = makeStack(t, { env: { ORATORIO_MODEL_ENDPOINT: '', ORATORIO_MODEL_API_KEY: '' } });
  t.match(await askFor(t, 'env.required', layout, { engine: noEngine }), { status: 'warn', saw: /demo without AI/ });
  edit(layout, { ORATORIO_MODEL_ENDPOINT: 'https://models.example.test/v1' });
  t.match(await askFor(t, 'env.required', layout, { engine: noEngine }), {
    status: 'warn',
    saw: 'ORATORIO_MODEL_API_KEY: missing',
  });
});

t.test('a dollar outside of single quotes fails with its line and without its value', async (t) => {
  const layout = makeStack(t);
  put(layout.env, `${readFileSync(layout.env, 'utf8')}MY_SECRET=canary$dollar-value\n`, 0o600);
  const result = await askFor(t, 'env.quoting', layout, { engine: noEngine });
  t.match(result, { status: 'fail', saw: /MY_SECRET.*\$/ });
  t.notMatch(JSON.stringify(result), /canary\$dollar/);
  const [first = ''] = readFileSync(layout.env, 'utf8').match(/^ORATORIO_MODEL=.*$/m) ?? [];
  put(layout.env, `${readFileSync(layout.env, 'utf8').replace(/MY_SECRET.*\n/, '')}${first}\n`, 0o600);
  t.match(await askFor(t, 'env.quoting', layout, { engine: noEngine }), { status: 'warn', saw: /second time/ });
});

t.test('variables of the shell that stand in for .env are named, not shown', async (t) => {
  const layout = makeStack(t);
  const env = {
    ORATORIO_SERVICE_TOKEN: 'another-one-in-the-shell',
    COMPOSE_FILE: 'x.yml',
    ORATORIO_MODEL: 'm',
    HOME: '/',
  };
  const result = await askFor(t, 'env.override', layout, { engine: noEngine, env });
  t.match(result, {
    status: 'warn',
    saw: /: ORATORIO_SERVICE_TOKEN, COMPOSE_FILE\.$/,
    hint: 'unset ORATORIO_SERVICE_TOKEN COMPOSE_FILE',
  });
  t.notMatch(JSON.stringify(result), /another-one/);
  t.match(await askFor(t, 'env.override', layout, { engine: noEngine, env: { ...canaries } }), { status: 'ok' });
});

t.test('unreadable settings fail, and the checks that need them are skipped', async (t) => {
  const layout = makeStack(t);
  put(layout.config, '{"Oratorio": {"GitHub": {"WritesEnabled": "canary"}}}', 0o640);
  const results = await ask(t, layout, { engine: noEngine });
  t.match(results.get('config.file'), { status: 'fail', saw: /GitHub\.WritesEnabled must be true or false/ });
  t.notMatch(JSON.stringify(results.get('config.file')), /canary/);
  t.match(results.get('key.file'), { status: 'skip' });
  put(layout.config, '{"Oratorio": {}}', 0o640);
  t.match(await askFor(t, 'config.file', layout, { engine: noEngine }), {
    status: 'fail',
    saw: 'GitHub.AppId is not set; GitHub.PrivateKeyPath is not set; There are no repositories',
  });
  remove(layout.config);
  t.match(await askFor(t, 'config.file', layout, { engine: noEngine }), { status: 'fail', saw: /is missing/ });
});

t.test('an invalid key, or one outside of the mounted directories, fails without its content', async (t) => {
  const layout = makeStack(t, {
    key: '-----BEGIN RSA PRIVATE KEY-----\ncanaryCanaryCanaryCanary\n-----END RSA PRIVATE KEY-----\n',
  });
  const result = await askFor(t, 'key.file', layout, { engine: noEngine });
  t.match(result, { status: 'fail', saw: /no private key in PEM form/ });
  t.notMatch(JSON.stringify(result), /canaryCanary/);
  put(layout.config, readFileSync(layout.config, 'utf8').replace('/secrets/', '/etc/'), 0o640);
  t.match(await askFor(t, 'key.file', layout, { engine: noEngine }), {
    status: 'fail',
    saw: /neither below \/workspace nor \/secrets/,
  });
});

t.test('a file marked by us counts as ours', async (t) => {
  const layout = makeStack(t);
  put(layout.compose, marked('services: {}\n'), 0o644);
  t.match(await askFor(t, 'files.marker', layout, { engine: noEngine }), { status: 'ok' });
});
