/** A user without root who uses the command line on an engine. */
import { chmodSync, chownSync, existsSync, mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { root } from '../../scripts/toolchain.mjs';
import { must } from '../deploy/must.ts';
import { containers } from './places-scene.ts';
import { images, variable } from './variables.ts';

const uid = 1_234;

export interface PlainUser {
  readonly uid: number;
  /** Home directory. */
  readonly directory: string;
  /** Words that run a command as this user. */
  readonly as: readonly string[];
  oratorio(engine: string, ...words: string[]): Promise<string>;
}

/** Makes a user whose files are below the directory of the run, with the checkout in reach. */
export async function plainUser(t: Test): Promise<PlainUser> {
  const directory = variable('directory');
  const [product, user] = [join(directory, 'checkout'), join(directory, 'user')];
  for (const path of [product, user, join(user, 'tmp'), join(user, 'site')]) {
    mkdirSync(path);
    chownSync(path, uid, uid);
  }
  chmodSync(directory, 0o711);
  await must('mount', ['--bind', root, product], { timeoutMs: 10_000 });
  t.teardown(() => must('umount', ['--lazy', product], { timeoutMs: 10_000 }));
  const node = process.execPath.replace(root, product);
  const variables = [
    `HOME=${user}`,
    `TMPDIR=${user}/tmp`,
    `XDG_RUNTIME_DIR=${user}/tmp`,
    `PATH=${process.env['PATH']}`,
  ];
  const identity = ['--reuid', String(uid), '--regid', String(uid), '--clear-groups'];
  const as = ['setpriv', ...identity, 'env', '-i', ...variables];
  return {
    ...{ uid, directory: user, as },
    oratorio(engine, ...words) {
      const [program = '', ...rest] = [...as, `DOCKER_HOST=unix://${engine}`, node, join(product, 'bin/oratorio.js')];
      return must(program, [...rest, ...words], { timeoutMs: 120_000 });
    },
  };
}

/** Starts a workspace in a container, works in it, moves it back and there again, and stops everything. */
export async function movesThereAndBack(
  t: Test,
  user: PlainUser,
  { engine, version, uidInside }: { readonly engine: string; readonly version: RegExp; readonly uidInside: RegExp },
): Promise<void> {
  const oratorio = (...words: string[]) => user.oratorio(engine, ...words);
  const site = join(user.directory, 'site');
  const words = ['--init', '--in', 'container', '--image', images.base, '--network', 'none', '--no-follow', '--json'];
  const record = JSON.parse(await oratorio('up', site, ...words));
  t.match(record, {
    state: 'running',
    place: { kind: 'container', image: images.base, network: 'none', state: 'ready' },
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
  const back = ['container', '--image', images.base, '--network', 'none', '--json'];
  t.match(JSON.parse(await oratorio('place', site, ...back)), { place: { image: images.base } });
  await oratorio('hub', 'stop');
  t.same(await containers(), []);
  t.notOk(existsSync(join(user.directory, '.oratorio/workspaces/run')));
}
