import { once } from 'node:events';
import { existsSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import t from 'tap';
import * as engines from '../../../src/deploy/engine/index.ts';
import { eventually } from '../../hub/harness.ts';
import { unusedPort } from '../../ports.ts';
import { stackSecrets } from '../fake-engine/stack.ts';
import { setUp } from './setup.ts';

t.test('the state of the backend is copied while it is stopped, and put back without anything newer', async (t) => {
  const { fake, engine, stack } = setUp(t);
  const file = join(stack.state, 'state.tar');
  t.equal(await engines.saveState(engine, stack, file), null, 'there is no backend yet');
  t.notOk(existsSync(file));
  await engines.startServices(engine, stack, ['backend'], { recreate: false });
  fake.setVolume('test-stack_backend-data', 'rows of today');
  t.equal(await engines.saveState(engine, stack, file), 13);
  t.equal(statSync(file).mode & 0o777, 0o600);
  t.equal(fake.containers().backend?.status, 'exited');
  fake.setVolume('test-stack_backend-data', 'rows of a version that was no good');
  await engines.restoreState(engine, stack, file);
  t.equal(fake.volume('test-stack_backend-data'), 'rows of today');
  t.equal(fake.calls('volume', 'rm').length, 1);
  t.equal(fake.containers().backend?.status, 'created');
  await engines.restoreState(engine, stack, file);
  t.equal(fake.volume('test-stack_backend-data'), 'rows of today');
});

t.test('a copy that fails leaves no file, and the backend runs as before', async (t) => {
  const { fake, engine, stack } = setUp(t);
  const file = join(stack.state, 'state.tar');
  await engines.startServices(engine, stack, ['backend'], { recreate: false });
  fake.change({ answers: [{ when: 'docker cp', exitCode: 1, stderr: 'write: no space left on device' }] });
  await t.rejects(engines.saveState(engine, stack, file), { code: 'diskFull' });
  t.notOk(existsSync(file) || existsSync(`${file}.part`));
  t.equal(fake.containers().backend?.status, 'running');
  await t.rejects(engines.saveState(engine, stack, join(stack.state, 'absent', 'state.tar')), { code: 'fileFailed' });
  t.equal(fake.containers().backend?.status, 'running');
});

t.test('a port is free, used by the stack, or used by a process that is named', async (t) => {
  const port = await unusedPort();
  const { fake, engine, stack } = setUp(t, {}, { env: { ORATORIO_BACKEND_PORT: String(port) } });
  const wanted = { ports: [port], host: '127.0.0.1', service: 'backend' } as const;
  await engines.checkPorts(engine, stack, wanted);
  const server = createServer().listen(port, '127.0.0.1');
  await once(server, 'listening');
  await t.rejects(engines.checkPorts(engine, stack, wanted), {
    code: 'portTaken',
    message: new RegExp(`Port ${port} is used by .*process ${process.pid}`),
    hint: /ss -ltnp/,
  });
  await t.rejects(engines.checkPorts(engine, stack, { ...wanted, host: '*' }), { code: 'portTaken' });
  t.not(await engines.firstFreePort(port), port);
  await engines.startServices(engine, stack, ['backend'], { recreate: false });
  await engines.checkPorts(engine, stack, wanted);
  server.close();
  await once(server, 'close');
  fake.change({ others: [{ name: 'nginx', ports: [{ host: '0.0.0.0', hostPort: port, containerPort: 80 }] }] });
  const other = { ...wanted, service: 'agent' } as const;
  await t.rejects(engines.checkPorts(engine, stack, other), { message: /is used by container (nginx|test-stack)/ });
  t.equal(await engines.firstFreePort(port), port);
  t.not(await engines.firstFreePort(port, new Set([port])), port);
});

t.test('logs are read by service, without secrets, and followed through a restart until an abort', async (t) => {
  const secret = stackSecrets.ORATORIO_GITHUB_WEBHOOK_SECRET;
  const log = ['one', `two ${secret} ${Buffer.from(secret).toString('base64')}`, '\u001b[31mthree'];
  const { fake, engine, stack } = setUp(t, { services: { backend: { log } } });
  await engines.startServices(engine, stack, ['backend'], { recreate: false });
  const printed: string[] = [];
  const print = (line: string, service: string) => printed.push(`${service} ${line}`);
  const never = new AbortController().signal;
  await engines.followLogs(engine, stack, { tail: 10, since: '10m', timestamps: true }, print, never);
  t.strictSame([...printed].sort(), [
    'agent agent is ready',
    'backend one',
    'backend three',
    'backend two [redacted] [redacted]',
  ]);
  t.match(fake.calls('logs').at(-1)?.args.join(' '), /^logs --tail 10 --since 10m --timestamps /);
  await t.rejects(engines.followLogs(engine, stack, { since: '$(x)' }, print, never), { code: 'invalidInput' });
  printed.length = 0;
  const controller = new AbortController();
  let restarted: Promise<void> | undefined;
  const following = engines.followLogs(
    engine,
    stack,
    { follow: true, services: ['backend'], pollMs: 200 },
    (line, service) => {
      print(line, service);
      if (printed.length === 3) restarted = engines.startServices(engine, stack, ['backend'], { recreate: true });
      if (printed.length === 6) controller.abort();
    },
    controller.signal,
  );
  await following;
  await restarted;
  t.equal(printed.length, 6);
  t.match(fake.calls('logs', '--follow').at(-1)?.args, ['logs', '--follow', '--since']);
});

t.test('logs are followed through a time without containers, as between removal and recreation', async (t) => {
  const { fake, engine, stack } = setUp(t, { services: { backend: { log: ['ready'] } } });
  await engines.startServices(engine, stack, ['backend'], { recreate: false });
  const controller = new AbortController();
  const lines: string[] = [];
  let recreated: Promise<void> | undefined;
  async function recreate(): Promise<void> {
    await engines.removeServices(engine, stack, ['backend']);
    const polls = () => fake.calls('ps').length;
    const before = polls();
    // The first of these may have begun before the removal.
    await eventually(() => polls() >= before + 2 || undefined, 'the follower has polled a stack without containers');
    await engines.startServices(engine, stack, ['backend'], { recreate: false });
  }
  await engines.followLogs(
    engine,
    stack,
    { follow: true, services: ['backend'], pollMs: 10 },
    (line) => {
      lines.push(line);
      if (lines.length === 1) recreated = recreate();
      if (lines.length === 2) controller.abort();
    },
    controller.signal,
  );
  await recreated;
  t.same(lines, ['ready', 'ready']);
});

t.test('following a stack without containers waits until one starts', async (t) => {
  const { fake, engine, stack } = setUp(t, { services: { backend: { log: ['ready'] } } });
  const controller = new AbortController();
  const lines: string[] = [];
  const following = engines.followLogs(
    engine,
    stack,
    { follow: true, services: ['backend'], pollMs: 10, tail: 0 },
    (line) => {
      lines.push(line);
      controller.abort();
    },
    controller.signal,
  );
  await eventually(() => fake.calls('ps').length >= 2 || undefined, 'the follower has polled twice');
  await engines.startServices(engine, stack, ['backend'], { recreate: false });
  await following;
  t.same(lines, ['ready'], 'also with --tail 0, which is about existing lines');
});

t.test('a container renamed while its log is followed is read once', async (t) => {
  const { fake, engine, stack } = setUp(t, { services: { backend: { log: ['ready'] } } });
  await engines.startServices(engine, stack, ['backend'], { recreate: false });
  const { container = '' } = (await engines.serviceStates(engine, stack)).find((s) => s.service === 'backend') ?? {};
  const controller = new AbortController();
  const lines: string[] = [];
  const polls = () => fake.calls('ps').length;
  async function renameAndStop(): Promise<void> {
    const settings = { timeoutMs: 60_000 };
    await engine.run(['rename', container, 'renamed'], settings);
    await engine.run(['stop', 'renamed'], settings);
    const before = polls();
    await eventually(() => polls() >= before + 4 || undefined, 'the follower has polled the stopped container');
    controller.abort();
  }
  let renamed: Promise<void> | undefined;
  await engines.followLogs(
    engine,
    stack,
    { follow: true, services: ['backend'], pollMs: 10 },
    (line) => {
      lines.push(line);
      renamed ??= renameAndStop();
    },
    controller.signal,
  );
  await renamed;
  t.same(lines, ['ready']);
  t.equal(fake.calls('logs').length, 1);
});
