import { rmSync, statSync, writeFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import { childOf } from '../../src/checkpoints/byte-path.ts';
import type { EntryKind } from '../../src/checkpoints/entry.ts';
import { scan } from '../../src/checkpoints/scan.ts';
import { SeenDirectory, type StatIndex } from '../../src/checkpoints/stat-index.ts';
import { Tree } from '../../src/checkpoints/tree.ts';
import { bench, limits } from './tree-of-files.ts';

/** More arguments than one call of a function takes. */
const count = 130_000;
const old = { mode: 0, size: 0, mtime: 0, ctime: 0, ino: 0 };

/** A directory of the last checkpoint. @param names its entries, all of one kind */
function seen(names: readonly string[], kind: EntryKind): SeenDirectory {
  const directory = new SeenDirectory(old, names);
  for (const at of names.keys()) directory.set(at, { ...old, kind });
  return directory;
}

const files = Array.from({ length: count }, (_, n) => `f${n}`);
const known: StatIndex = new Map([
  ['', seen(['lib'], 'directory')],
  ['lib', seen(['kept', ...files], 'file')],
]);

/** Scans a bench whose last checkpoint had `lib` with many files. */
function scanned(t: Test, change: (at: (path: string) => string) => void) {
  const place = bench(t);
  place.write('lib/kept', 'kept');
  change(place.at);
  const tree = new Tree(place.root);
  t.teardown(() => tree.close());
  const { gone } = scan({ tree, known, limits, leftOut: new Map(), omitted: new Set() });
  const names = new Set(gone);
  return { gone: gone.length, areAllGone: files.every((name) => names.has(childOf('lib', name))) };
}

t.test('130,000 entries that are missing since the last checkpoint are found', async (t) => {
  const inDirectory = scanned(t, () => {});
  t.same(inDirectory, { gone: count, areAllGone: true }, 'files of a directory that stays');
  const without = scanned(t, (at) => rmSync(at('lib'), { recursive: true }));
  t.same(without, { gone: count + 2, areAllGone: true }, 'a whole directory');
  const replaced = scanned(t, (at) => {
    rmSync(at('lib'), { recursive: true });
    writeFileSync(at('lib'), '');
    t.ok(statSync(at('lib')).isFile());
  });
  t.same(replaced, { gone: count + 1, areAllGone: true }, 'a directory that a file replaced');
});
