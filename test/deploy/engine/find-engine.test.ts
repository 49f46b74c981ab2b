import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { findEngine } from '../../../src/deploy/engine/index.ts';
import { fakeEngine } from '../fake-engine/index.ts';

t.test('docker with Compose v2 is found, and asked for its version', async (t) => {
  const fake = fakeEngine(t);
  const { runtime, compose } = await findEngine({ env: fake.env });
  t.strictSame(runtime, { kind: 'docker', version: '28.2.2', isRootless: false });
  t.strictSame(compose, { version: '2.40.3' });
});

t.test('Compose 1.29 is refused with the packages of version 2', async (t) => {
  await t.rejects(findEngine({ env: fakeEngine(t, { compose: 'v1' }).env }), {
    code: 'composeMissing',
    message: 'Compose 1.29.2 is too old: Compose v2 is needed.',
    hint: /docker-compose-plugin .*docker-compose-v2 \(Ubuntu\)/,
  });
});

t.test('a rootless engine and podman behind its socket are distinguished', async (t) => {
  const { runtime } = await findEngine({ env: fakeEngine(t, { isRootless: true }).env });
  t.equal(runtime.isRootless, true);
  const podman = await findEngine({ env: fakeEngine(t, { podman: true }).env });
  t.match(podman.runtime, { kind: 'podman', version: '5.4.2' });
});

t.test('a missing or silent engine is named with a remedy', async (t) => {
  const find = (scenario: Parameters<typeof fakeEngine>[1], env = {}) =>
    findEngine({ env: { ...fakeEngine(t, scenario).env, ...env } });
  await t.rejects(find({ engine: 'stopped' }), {
    code: 'engineUnreachable',
    message: /not running/,
    hint: /systemctl start docker/,
  });
  await t.rejects(find({ engine: 'forbidden' }), {
    code: 'engineUnreachable',
    message: /may not use/,
    hint: /usermod -aG docker/,
  });
  await t.rejects(find({ engine: 'stopped' }, { DOCKER_HOST: 'unix:///elsewhere.sock' }), {
    code: 'engineUnreachable',
    hint: /DOCKER_HOST is set/,
  });
  await t.rejects(find({ compose: 'none' }), {
    code: 'composeMissing',
    message: /not installed/,
    hint: /apt-get install/,
  });
  await t.rejects(find({ podman: true, compose: 'v1' }), {
    code: 'composeMissing',
    message: /with podman, Compose v2/,
  });
  await t.rejects(findEngine({ env: { PATH: '/nowhere' } }), { code: 'engineMissing', hint: /Install Docker/ });
});

t.test('podman without docker is used through its socket; without one the remedy opens it', async (t) => {
  const bin = mkdtempSync(join(tmpdir(), 'oratorio-podman-'));
  t.teardown(() => rmSync(bin, { recursive: true, force: true }));
  const socket = join(bin, 'podman.sock');
  const write = (name: string, says: string): void => {
    writeFileSync(join(bin, name), `#!/bin/sh\n${says}\n`);
    chmodSync(join(bin, name), 0o755);
  };
  const info = {
    host: { security: { rootless: true }, remoteSocket: { path: `unix://${socket}` } },
    version: { Version: '5.4.2' },
  };
  write('podman', `echo '${JSON.stringify(info)}'`);
  write('docker-compose', 'echo "$DOCKER_HOST" >&2; echo 2.26.1');
  const env = { PATH: bin, HOME: bin };
  await t.rejects(findEngine({ env }), {
    code: 'engineUnreachable',
    hint: 'Run: systemctl --user enable --now podman.socket',
  });
  writeFileSync(socket, '');
  const engine = await findEngine({ env });
  t.match(engine, {
    runtime: { kind: 'podman', version: '5.4.2', isRootless: true },
    compose: { version: '2.26.1' },
  });
  write('docker-compose', 'echo 1.29.2');
  await t.rejects(findEngine({ env }), { code: 'composeMissing' });
  write('podman', 'echo "cannot set up namespace" >&2; exit 1');
  await t.rejects(findEngine({ env }), { code: 'engineUnreachable', message: /namespace/ });
});

t.test('looking for an engine can be cancelled', async (t) => {
  const fake = fakeEngine(t, { engine: 'silent' });
  const controller = new AbortController();
  const found = findEngine({ env: fake.env, signal: controller.signal });
  const rejected = t.rejects(found, { code: 'cancelled' });
  while (fake.calls('version').length === 0) await new Promise((resolve) => setImmediate(resolve));
  controller.abort();
  await rejected;
  await t.rejects(findEngine({ env: fake.env, signal: AbortSignal.abort() }), { code: 'cancelled' });
});
