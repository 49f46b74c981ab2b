/** A user without root who uses the command line on an engine. */
import { appendFileSync, chmodSync, chownSync, cpSync, existsSync, mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { root } from '../../scripts/toolchain.mjs';
import { must } from '../deploy/must.ts';
import { containers, mountSmall } from './places-scene.ts';
import { images, variable, variables } from './variables.ts';

const nodeWords = ['--disable-warning=ExperimentalWarning', '--conditions=development'];
const uid = 1_234;
const name = 'oratorio-test';

export interface PlainUser {
  readonly uid: number;
  /** Home directory. */
  readonly directory: string;
  /** Path of the checkout that this user can read. */
  readonly checkout: string;
  /** Words that run a command as this user. */
  readonly as: readonly string[];
  oratorio(engine: string, ...words: string[]): Promise<string>;
  /** Runs a test file of this directory. Each of its tests is a test of `t`. */
  runTests(t: Test, engine: string, file: string): Promise<unknown>;
}

/** Makes a user whose files are below the directory of the run. The user has an entry in `/etc`, subordinate ids, and a readable checkout. */
export async function plainUser(t: Test): Promise<PlainUser> {
  const directory = variable('directory');
  const [product, user] = [join(directory, 'checkout'), join(directory, 'user')];
  const small = join(user, 'small');
  for (const path of [product, user, join(user, 'tmp'), join(user, 'site'), small]) {
    mkdirSync(path);
    chownSync(path, uid, uid);
  }
  chmodSync(directory, 0o711);
  const [settings, runtime] = [join(directory, 'etc'), `/run/user/${uid}`];
  const mount = async (...words: string[]) => {
    await must('mount', words, { timeoutMs: 10_000 });
    t.teardown(() => must('umount', ['--lazy', words.at(-1) ?? ''], { timeoutMs: 10_000 }));
  };
  await mount('--bind', root, product);
  await mountSmall(t, small, uid);
  // Rootless engines keep their state here.
  mkdirSync('/run/user', { recursive: true });
  await mount('-t', 'tmpfs', 'tmpfs', '/run/user');
  mkdirSync(runtime, { mode: 0o700 });
  chownSync(runtime, uid, uid);
  const tunnels = join(directory, 'tun');
  await must('mknod', ['-m', '666', tunnels, 'c', '10', '200'], { timeoutMs: 10_000 });
  await mount('--bind', tunnels, '/dev/net/tun');
  cpSync('/etc', settings, { recursive: true, verbatimSymlinks: true });
  appendFileSync(join(settings, 'passwd'), `${name}:x:${uid}:${uid}::${user}:/bin/sh\n`);
  appendFileSync(join(settings, 'group'), `${name}:x:${uid}:\n`);
  for (const file of ['subuid', 'subgid']) appendFileSync(join(settings, file), `${name}:200000:65536\n`);
  await mount('--bind', settings, '/etc');
  const node = process.execPath.replace(root, product);
  const environment = [
    `HOME=${user}`,
    `TMPDIR=${user}/tmp`,
    `XDG_RUNTIME_DIR=${runtime}`,
    `PATH=${process.env['PATH']}`,
  ];
  const identity = ['--reuid', String(uid), '--regid', String(uid), '--clear-groups'];
  const as = ['setpriv', ...identity, 'env', '-i', '-C', user, ...environment];
  return {
    ...{ uid, directory: user, checkout: product, as },
    oratorio(engine, ...words) {
      const [program = '', ...rest] = [...as, `DOCKER_HOST=unix://${engine}`, node, join(product, 'bin/oratorio.js')];
      return must(program, [...rest, ...words], { timeoutMs: 120_000 });
    },
    runTests(t, engine, file) {
      const own = { DOCKER_HOST: `unix://${engine}`, TAP_TIMEOUT: '900', [variables.small]: small };
      const path = join(product, 'test/stack', file);
      const [program = '', ...rest] = [...as, ...Object.entries(own).map(([key, value]) => `${key}=${value}`), node];
      return t.spawn(program, [...rest, ...nodeWords, path], {}, file);
    },
  };
}

/** An engine, and the answers that the user expects of it. */
export interface EngineFacts {
  readonly engine: string;
  readonly network: 'none' | 'bridge';
  readonly version: RegExp;
  readonly uidInside: RegExp;
}

/** Starts a workspace in a container, works in it, moves it back and there again, and stops everything. */
export async function movesThereAndBack(
  t: Test,
  user: PlainUser,
  { engine, network, version, uidInside }: EngineFacts,
): Promise<void> {
  const oratorio = (...words: string[]) => user.oratorio(engine, ...words);
  const site = join(user.directory, 'site');
  const words = ['--init', '--in', 'container', '--image', images.base, '--network', network, '--no-follow', '--json'];
  const record = JSON.parse(await oratorio('up', site, ...words));
  t.match(record, {
    state: 'running',
    place: { kind: 'container', image: images.base, network, state: 'ready' },
  });
  t.match(await oratorio('chat', '--workspace', site, '--yes', 'write own.txt: mine then run: id -u'), uidInside);
  t.equal(statSync(join(site, 'own.txt')).uid, user.uid);
  const shown = await oratorio('place', site);
  t.match(shown, /runs in the place container/);
  t.match(shown, version);
  t.match(await oratorio('doctor', site, '--offline', '--json').catch(String), /machine\.containers/);
  await t.rejects(oratorio('place', site, 'container', '--image', 'missing:1'), /missing:1[\s\S]*was not changed/);
  t.match(JSON.parse(await oratorio('list', '--json')), [{ state: 'running', place: { image: images.base } }]);
  t.notOk(JSON.parse(await oratorio('place', site, 'local', '--json')).place);
  t.same(await containers(), []);
  const back = ['container', '--image', images.base, '--network', network, '--json'];
  t.match(JSON.parse(await oratorio('place', site, ...back)), { place: { image: images.base } });
  await oratorio('hub', 'stop');
  t.same(await containers(), []);
  t.notOk(existsSync(join(user.directory, '.oratorio/workspaces/run')));
}
