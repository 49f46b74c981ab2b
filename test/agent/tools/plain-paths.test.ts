import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { isMissingBelow, PlainPaths } from '../../../src/agent/tools/plain-paths.ts';
import { places } from './file-tools.ts';

const onLinux = {
  skip: process.platform !== 'linux' && 'elsewhere a name may be spelled otherwise than the real path',
};

const identityOf = (path: string) => {
  const { dev, ino } = statSync(path, { bigint: true });
  return `${dev}:${ino}`;
};

t.test('a path without symlinks is real, with the identities of all above it', onLinux, async (t) => {
  const { at } = places(t, { 'a/b.txt': '' });
  const expected: string[] = [];
  for (let path = at('a/b.txt'); ; path = dirname(path)) {
    expected.push(identityOf(path));
    if (path === '/') break;
  }
  t.same(new PlainPaths().at(at('a/b.txt')), { path: at('a/b.txt'), chain: expected, exists: true });
  t.same(new PlainPaths().at('/'), { path: '/', chain: [identityOf('/')], exists: true });
});

t.test('a missing path below a directory or a file is its own real path, without an identity', onLinux, async (t) => {
  const { at } = places(t, { 'a/b.txt': '' });
  for (const path of [at('a/c'), at('a/b.txt/c'), at('new/deep/file')]) {
    const found = new PlainPaths().at(path);
    t.match(found, { path, exists: false });
    t.equal(found?.chain[0], `name ${path}`);
    t.equal(found?.chain.at(-1), identityOf('/'));
  }
});

t.test('a path through a symlink, or with a name too long, is left to be resolved', onLinux, async (t) => {
  const { outside, at } = places(t, { 'a/b.txt': '' });
  symlinkSync('a', at('inner'));
  symlinkSync(outside, at('out'));
  symlinkSync('nowhere', at('dangling'));
  const unclear = ['inner', 'inner/b.txt', 'inner/new', 'out', 'out/x', 'dangling', 'dangling/x', 'x'.repeat(300)];
  for (const path of unclear) t.equal(new PlainPaths().at(at(path)), undefined, path);
});

t.test('an instance is for one moment: only the next one sees changes', onLinux, async (t) => {
  const { outside, at } = places(t, { 'a/b.txt': '' });
  const first = new PlainPaths();
  const before = first.at(at('a/b.txt'));
  rmSync(at('a'), { recursive: true });
  symlinkSync(outside, at('a'));
  t.same(first.at(at('a/b.txt')), before);
  t.equal(new PlainPaths().at(at('a/b.txt')), undefined);
  rmSync(at('a'));
  t.match(new PlainPaths().at(at('a/b.txt')), { exists: false });
  mkdirSync(at('a'));
  execFileSync('mkfifo', [at('a/b.txt')]);
  t.match(new PlainPaths().at(at('a/b.txt')), { exists: true }, 'a pipe is there, and is not opened');
  writeFileSync(join(outside, 'x'), '');
  t.match(new PlainPaths().at(join(outside, 'x')), { exists: true });
});

t.test(
  'a file is missing for certain when a part of its path is missing and none before it is a symlink',
  onLinux,
  async (t) => {
    const { workspace, outside, at } = places(t, { 'a/b.txt': '' });
    symlinkSync(outside, at('out'));
    symlinkSync('nowhere', at('dangling'));
    for (const path of ['c', 'c/d', 'a/c', 'a/c/d']) t.equal(isMissingBelow(workspace, at(path)), true, path);
    for (const path of ['.', 'a', 'a/b.txt', 'out', 'out/x', 'dangling', 'x'.repeat(300)]) {
      t.equal(isMissingBelow(workspace, at(path)), false, path);
    }
    t.equal(isMissingBelow('/', at('c')), true);
    t.equal(isMissingBelow('/', at('a/b.txt')), false);
  },
);
