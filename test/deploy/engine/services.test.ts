import { writeFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import type { ServiceState } from '../../../src/deploy/engine/index.ts';
import * as engines from '../../../src/deploy/engine/index.ts';
import type { FakeEngine } from '../fake-engine/index.ts';
import { stackSecrets } from '../fake-engine/stack.ts';
import { setUp } from './setup.ts';

/** Nothing that was called shows a secret to a list of processes. */
function noSecretInWords(t: Test, fake: FakeEngine): void {
  const words = JSON.stringify(fake.calls().map(({ args }) => args));
  for (const secret of Object.values(stackSecrets)) t.notOk(words.includes(secret));
}

t.test('a stack is started, inspected, recreated and removed', async (t) => {
  const { fake, engine, stack } = setUp(t, {}, { hasIngress: true });
  t.strictSame(await engines.serviceStates(engine, stack), []);
  await engines.startServices(engine, stack, ['backend'], { recreate: false });
  const states = await engines.serviceStates(engine, stack);
  t.strictSame(
    states.map(({ service, state, health }) => [service, state, health]),
    [
      ['agent', 'running', 'healthy'],
      ['backend', 'running', 'healthy'],
    ],
  );
  t.match(states[1], { container: 'test-stack-backend-1', restarts: 0, image: 'oratorio', imageId: /^sha256:/ });
  t.strictSame(states[1]?.ports, [{ host: '127.0.0.1', hostPort: 5087, containerPort: 5087 }]);
  const before = fake.containers();
  await engines.startServices(engine, stack, ['backend'], { recreate: true });
  const after = fake.containers();
  t.equal(after.agent?.id, before.agent?.id, 'what it needs is left alone');
  t.not(after.backend?.id, before.backend?.id);
  t.strictSame(fake.calls('up').at(-1)?.args.slice(-5), ['up', '--detach', '--no-deps', '--force-recreate', 'backend']);
  t.equal(await engines.removeServices(engine, stack, ['backend']), 1);
  t.equal(await engines.removeServices(engine, stack, ['backend']), 0);
  t.strictSame(Object.keys(fake.containers()), ['agent']);
  noSecretInWords(t, fake);
});

t.test(
  'every composition that is there is used, and the environment of the caller does not win over .env',
  async (t) => {
    const { fake, stack } = setUp(t, {}, { hasIngress: true, env: { HTTP_PROXY: 'http://of-env' } });
    const caller = {
      ...fake.env,
      HTTP_PROXY: 'http://of-caller',
      ORATORIO_IMAGE: 'evil',
      COMPOSE_FILE: 'x',
      COMPOSE_PROJECT_NAME: 'y',
    };
    const engine = engines.engineOf(
      {
        program: 'docker',
        composeProgram: ['docker', 'compose'],
        runtime: { kind: 'docker', version: '28', isRootless: false },
        compose: { version: '2.40.3' },
      },
      caller,
    );
    await engines.checkComposition(engine, stack);
    const [call] = fake.calls('config');
    t.strictSame(call?.args, [
      ...['compose', '--project-directory', stack.directory, '--env-file', stack.env, '--project-name', 'test-stack'],
      ...['--file', stack.compose, '--file', stack.overlay, '--ansi', 'never', 'config', '--quiet'],
    ]);
    t.strictSame(
      Object.keys(call?.env ?? {}).filter((name) => /PROXY|COMPOSE|ORATORIO/.test(name)),
      [],
    );
    t.strictSame(engines.overridesOf(caller, engines.readProject(stack).values), [
      'COMPOSE_PROJECT_NAME',
      'HTTP_PROXY',
      'ORATORIO_IMAGE',
    ]);
    const loud = await engine.runCompose(stack, ['config'], { timeoutMs: 60_000 });
    t.equal(loud.stdout, '', 'config is always quiet');
  },
);

t.test('a failed start is reported by its cause, without secrets', async (t) => {
  const { fake, engine, stack } = setUp(t, { leaks: Object.values(stackSecrets).join(' ') });
  const lines: string[] = [];
  const start = (stderr: string) => {
    fake.change({ answers: [{ when: 'up', exitCode: 1, stderr }] });
    return engines.startServices(engine, stack, ['backend'], { recreate: true, onLine: (line) => lines.push(line) });
  };
  const cases = [
    ['Bind for 127.0.0.1:5087 failed: port is already allocated', 'portTaken'],
    ['write /var/lib/docker/x: no space left on device', 'diskFull'],
    ['Error response from daemon: No such image: oratorio:9', 'imageFailed'],
    ['something else entirely', 'startFailed'],
  ] as const;
  for (const [said, code] of cases) {
    const error = await start(said).catch((reason: unknown) => reason);
    t.match(error, { code, message: /Starting backend failed/ });
    for (const secret of Object.values(stackSecrets))
      t.notOk(JSON.stringify([error, String(error), lines]).includes(secret));
  }
  t.ok(lines.some((line) => line.includes('[redacted]')));
});

t.test('services are waited for until they are healthy', async (t) => {
  const { engine, stack } = setUp(t, { services: { backend: { afterLooks: 3 }, agent: { is: 'unchecked' } } });
  await engines.startServices(engine, stack, ['backend'], { recreate: false });
  const seen: string[] = [];
  const onStates = (states: readonly ServiceState[]) => seen.push(states.map(({ health }) => health).join(' '));
  const states = await engines.awaitHealthy(engine, stack, ['agent', 'backend'], {
    onStates,
    pollMs: 1,
    timeoutMs: 300_000,
  });
  t.strictSame(
    states.map(({ health }) => health),
    ['none', 'healthy'],
  );
  t.strictSame(seen, ['none starting', 'none healthy']);
});

t.test('a service that exits, restarts or is missing fails at once with the end of its log', async (t) => {
  const log = [
    ...Array.from({ length: 60 }, (_, at) => `line ${at}`),
    `key ${stackSecrets.ORATORIO_MODEL_API_KEY} refused`,
  ];
  const { fake, engine, stack } = setUp(t, { services: { backend: { is: 'exits', log } } });
  const lines: string[] = [];
  const wait = () =>
    engines.awaitHealthy(engine, stack, ['agent', 'backend'], {
      onLine: (line) => lines.push(line),
      timeoutMs: 3_600_000,
    });
  await t.rejects(wait(), { code: 'unhealthy', service: 'agent', message: /has no container/, log: [] });
  await engines.startServices(engine, stack, ['backend'], { recreate: false });
  const error = await wait().catch((reason: unknown) => reason);
  t.ok(error instanceof engines.UnhealthyError);
  t.match(error, { service: 'backend', message: /has ended with exit code 1/, hint: /oratorio server logs/ });
  t.equal(lines.length, 50);
  t.ok(lines.includes('backend | key [redacted] refused'));
  t.notMatch(JSON.stringify(error), stackSecrets.ORATORIO_MODEL_API_KEY);
  for (const [is, message] of [
    ['restarts', /is started again/],
    ['outOfMemory', /more memory/],
  ] as const) {
    fake.change({ services: { backend: { is } } });
    await t.rejects(wait(), { message });
  }
});

t.test('one that stays unhealthy fails at the deadline, and waiting can be cancelled', async (t) => {
  const { engine, stack } = setUp(t, { services: { backend: { is: 'unhealthy' } } });
  await engines.startServices(engine, stack, ['backend'], { recreate: false });
  await t.rejects(engines.awaitHealthy(engine, stack, ['backend'], { timeoutMs: 3_000, pollMs: 500 }), {
    code: 'unhealthy',
  });
  const controller = new AbortController();
  const onStates = () => controller.abort();
  await t.rejects(
    engines.awaitHealthy(engine, stack, ['backend'], { signal: controller.signal, onStates, pollMs: 1 }),
    {
      code: 'cancelled',
    },
  );
});

t.test('only missing images are pulled, and one that cannot be pulled is named', async (t) => {
  const { fake, engine, stack } = setUp(
    t,
    { images: ['oratorio'], registry: ['caddy:2.11.4-alpine'] },
    { hasIngress: true },
  );
  t.strictSame(
    [...engines.imagesOf(stack)],
    [
      ['agent', 'oratorio'],
      ['backend', 'oratorio'],
      ['webhook-gateway', 'caddy:2.11.4-alpine'],
    ],
  );
  t.strictSame(await engines.pullImages(engine, stack, ['agent', 'backend', 'webhook-gateway']), [
    { image: 'oratorio', state: 'kept' },
    { image: 'caddy:2.11.4-alpine', state: 'pulled' },
  ]);
  t.strictSame(
    fake.calls('pull').map(({ args }) => args),
    [['pull', 'caddy:2.11.4-alpine']],
  );
  await t.rejects(engines.pullImage(engine, 'nobody/has:it'), { code: 'imageFailed', hint: /docker login/ });
  await t.rejects(engines.pullImage(engine, `sha256:${'0'.repeat(64)}`), {
    code: 'imageFailed',
    message: /by its id alone/,
  });
  const local = await engines.pinImage(engine, 'oratorio');
  t.match(local, { pinned: /^sha256:[0-9a-f]{64}$/, reference: 'oratorio' });
  t.equal(local.pinned, local.id);
  const pulled = await engines.pinImage(engine, 'caddy:2.11.4-alpine');
  t.match(pulled.pinned, /^caddy@sha256:[0-9a-f]{64}$/);
  t.ok(await engines.hasImage(engine, pulled.pinned));
  t.equal((await engines.pinImage(engine, pulled.pinned)).pinned, pulled.pinned);
  await t.rejects(engines.pinImage(engine, 'absent'), { code: 'imageFailed' });
});

t.test('Compose checks the composition, and Caddy the file of the gateway', async (t) => {
  const { fake, engine, stack } = setUp(t, {}, { hasIngress: true });
  await engines.checkComposition(engine, stack);
  await engines.checkGateway(engine, stack);
  t.match(
    fake.calls('run').at(-1)?.args.join(' '),
    /--pull never --network none --read-only .*--entrypoint caddy caddy:2\.11\.4-alpine validate/,
  );
  fake.change({
    invalidGateway: 'unrecognized directive: respnd',
    invalidComposition: 'services.backend.imag is not allowed',
  });
  await t.rejects(engines.checkGateway(engine, stack), {
    code: 'gatewayInvalid',
    message: /unrecognized directive: respnd/,
  });
  await t.rejects(engines.checkComposition(engine, stack), {
    code: 'compositionInvalid',
    message: /imag is not allowed/,
  });
  fake.change({ answers: [{ when: 'docker run', exitCode: 125, stderr: 'docker: No such image: caddy' }] });
  await t.rejects(engines.checkGateway(engine, stack), { code: 'imageFailed' });
});

t.test('a stack without the values that Compose would guess is refused', async (t) => {
  const { engine, stack } = setUp(t);
  writeFileSync(stack.env, 'A=b\n');
  await t.rejects(engines.serviceStates(engine, stack), { code: 'notAStack', message: /COMPOSE_PROJECT_NAME/ });
});
