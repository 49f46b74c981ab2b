import { chownSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { compileCacheDirectory } from '../../src/hub/compile-cache.ts';

function temporary(t: Test): string {
  const directory = mkdtempSync(join(tmpdir(), 'oratorio-compile-cache-'));
  t.teardown(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

t.test('the directory is private, in the cache of the user', async (t) => {
  const HOME = temporary(t);
  const inHome = join(HOME, '.cache', 'oratorio', 'compiled');
  t.equal(compileCacheDirectory({ HOME }), inHome);
  t.equal(statSync(inHome).mode & 0o777, 0o700);
  const XDG_CACHE_HOME = join(HOME, 'elsewhere');
  t.equal(compileCacheDirectory({ HOME, XDG_CACHE_HOME }), join(XDG_CACHE_HOME, 'oratorio', 'compiled'));
  t.equal(compileCacheDirectory({ HOME, NODE_COMPILE_CACHE: '/chosen' }), '/chosen');
});

t.test('a missing, relative or unusable home gives no directory', async (t) => {
  const HOME = temporary(t);
  t.equal(compileCacheDirectory({}), undefined);
  t.equal(compileCacheDirectory({ HOME: 'relative' }), undefined);
  writeFileSync(join(HOME, '.cache'), 'a file');
  t.equal(compileCacheDirectory({ HOME }), undefined);
});

t.test('a link is not followed to a directory that is somewhere else', async (t) => {
  const HOME = temporary(t);
  mkdirSync(join(HOME, '.cache', 'oratorio'), { recursive: true, mode: 0o700 });
  mkdirSync(join(HOME, 'target'), { mode: 0o777 });
  symlinkSync(join(HOME, 'target'), join(HOME, '.cache', 'oratorio', 'compiled'));
  t.equal(compileCacheDirectory({ HOME }), undefined);
});

t.test(
  'a directory of another user is not used',
  { skip: process.getuid?.() === 0 ? false : 'only root can give a directory away' },
  async (t) => {
    const HOME = temporary(t);
    const directory = join(HOME, '.cache', 'oratorio', 'compiled');
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    chownSync(directory, 12_345, 12_345);
    t.equal(compileCacheDirectory({ HOME }), undefined);
  },
);
