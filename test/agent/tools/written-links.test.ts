/** Links that a command puts into a git directory. */
import { chmodSync, chownSync, lstatSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { WrittenLinks } from '../../../src/agent/tools/exec/written-links.ts';
import { canBecomeOther, otherUid } from '../../other-user.ts';

const isThere = (path: string) => lstatSync(path, { throwIfNoEntry: false }) !== undefined;

/** A git directory with a link of the user, and a link of a command deep below it. */
async function linked(t: Test) {
  const git = realpathSync(mkdtempSync(join(tmpdir(), 'oratorio-links-')));
  t.teardown(() => rmSync(git, { recursive: true }));
  // Another user enters it.
  chmodSync(git, 0o755);
  for (const path of ['refs/heads', 'logs/refs/heads']) mkdirSync(join(git, path), { recursive: true });
  const own = join(git, 'refs/heads/own');
  symlinkSync('/nowhere', own);
  const links = new WrittenLinks();
  await links.accept(git);
  const planted = join(git, 'logs/refs/heads/planted');
  const plant = (path = planted) => symlinkSync('/nowhere', path);
  return { git, own, links, planted, plant };
}

t.test('regression: H41 removes a link that stands behind thousands of directories', async (t) => {
  const { git, own, links, planted, plant } = await linked(t);
  for (let at = 0; at < 6_000; at += 1) mkdirSync(join(git, 'refs', `d${at}`));
  plant();
  const findings = await links.remove(git);
  t.match(findings, [{ path: planted }]);
  t.notOk(isThere(planted));
  t.ok(isThere(own), 'the link of the user stays');
});

t.test('regression: H41 removes a link beside more links than a call may have arguments', async (t) => {
  const { git, own, links, planted, plant } = await linked(t);
  mkdirSync(join(git, 'refs/many'));
  for (let at = 0; at < 150_000; at += 1) symlinkSync('x', join(git, 'refs/many', `l${at}`));
  plant();
  t.equal((await links.remove(git)).length, 150_001);
  t.notOk(isThere(planted));
  t.ok(isThere(own));
});

t.test('regression: H41 removes a link in a directory that cannot be listed', { skip: !canBecomeOther }, async (t) => {
  const { git, own, links, plant } = await linked(t);
  const closed = join(git, 'refs/closed');
  mkdirSync(closed);
  plant(join(closed, 'planted'));
  chownSync(closed, otherUid, otherUid);
  chmodSync(closed, 0o311);
  process.seteuid?.(otherUid);
  try {
    await links.remove(git);
  } finally {
    process.seteuid?.(0);
  }
  t.notOk(isThere(join(closed, 'planted')));
  t.ok(isThere(own));
});
