/** Agent servers in containers: Hubs that are killed during a start, and a user without root who uses the command line. */
import { chmodSync, chownSync, existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import t from 'tap';
import { root } from '../../scripts/toolchain.mjs';
import { must } from '../deploy/must.ts';
import { makeWorkspace, startTestHub, temporaryDirectory } from '../hub/harness.ts';
import { images, variable } from './variables.ts';

const place = { kind: 'container' };
const engine = join(variable('directory'), 'engine.sock');
const containers = async () =>
  (await must('docker', ['ps', '--all', '--quiet', '--filter', 'label=dev.oratorio.home'], { timeoutMs: 60_000 }))
    .split('\n')
    .filter(Boolean);

t.test('a Hub that is killed between create, start and attach leaves no second container', async (t) => {
  const home = temporaryDirectory(t, 'oratorio-home-');
  const Container = { Engine: engine, Image: images.base, Network: 'none', AllowRoot: true };
  writeFileSync(join(home, 'config.json'), JSON.stringify({ Place: { Container } }), { mode: 0o600 });
  const agentServer = {
    command: process.execPath,
    args: ['--disable-warning=ExperimentalWarning', join(root, 'dist/appserver/main.cjs')],
  };
  const workspace = makeWorkspace(t);
  for (const delayMs of [50, 150, 300, 500, 800, 1_200]) {
    const hub = await startTestHub(t, { home, agentServer });
    const started = hub.ensure(workspace, { place }).catch(() => undefined);
    await pause(delayMs);
    await hub.kill('SIGKILL');
    await started;
    const next = await startTestHub(t, { home, agentServer });
    t.match(
      await next.ensure(workspace, { place }),
      { state: 'running', place: { state: 'ready' } },
      `after ${delayMs} ms`,
    );
    t.equal((await containers()).length, 1, `one container after ${delayMs} ms`);
    await next.shutdown();
    t.same(await containers(), [], `none is left after ${delayMs} ms`);
  }
});

t.test('a user without root runs a workspace in a container, and moves it back', async (t) => {
  const uid = 1_234;
  const directory = variable('directory');
  const [product, user] = [join(directory, 'checkout'), join(directory, 'user')];
  for (const path of [product, user, join(user, 'tmp'), join(user, 'site')]) {
    mkdirSync(path);
    chownSync(path, uid, uid);
  }
  chmodSync(directory, 0o711);
  chmodSync(engine, 0o666);
  await must('mount', ['--bind', root, product], { timeoutMs: 10_000 });
  t.teardown(() => must('umount', ['--lazy', product], { timeoutMs: 10_000 }));
  const node = process.execPath.replace(root, product);
  const variables = [
    `HOME=${user}`,
    `TMPDIR=${user}/tmp`,
    `PATH=${process.env['PATH']}`,
    `DOCKER_HOST=unix://${engine}`,
  ];
  const oratorio = (...words: string[]) =>
    must(
      'setpriv',
      [
        ...['--reuid', String(uid), '--regid', String(uid), '--clear-groups', 'env', '-i', ...variables],
        ...[node, join(product, 'bin/oratorio.js'), ...words],
      ],
      { timeoutMs: 120_000 },
    );
  const site = join(user, 'site');
  const words = ['--init', '--in', 'container', '--image', images.base, '--network', 'none', '--no-follow', '--json'];
  const record = JSON.parse(await oratorio('up', site, ...words));
  t.match(record, { state: 'running', place: { kind: 'container', image: images.base, state: 'ready' } });
  t.match(await oratorio('chat', '--workspace', site, '--yes', 'write own.txt: mine then run: id -u'), /1234/);
  t.equal(statSync(join(site, 'own.txt')).uid, uid);
  t.match(await oratorio('place', site), /runs in the place container[\s\S]*docker 20/);
  t.match(await oratorio('doctor', site, '--offline', '--json').catch(String), /machine\.containers/);
  t.notOk(JSON.parse(await oratorio('place', site, 'local', '--json')).place);
  t.same(await containers(), []);
  const back = ['--image', images.base, '--network', 'none', '--json'];
  t.match(JSON.parse(await oratorio('place', site, 'container', ...back)), { place: { image: images.base } });
  await oratorio('hub', 'stop');
  t.same(await containers(), []);
  t.notOk(existsSync(join(user, '.oratorio/workspaces/run')));
});
