import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { bench, checkpointsOf, stateOf } from './tree-of-files.ts';

/** A workspace and a fork of it, in which `work` is done as one turn. */
async function forked(t: Test, work: (at: (name: string) => string) => void) {
  const place = bench(t);
  place.write('lines.txt', Array.from({ length: 9 }, (_, at) => `line ${at}\n`).join(''));
  place.write('same.bin', Buffer.alloc(300_000, 7));
  place.write('gone.txt', 'gone');
  const all = checkpointsOf(t, place);
  const target = join(place.root, '..', 'fork');
  mkdirSync(target, { mode: 0o700 });
  await all.checkpoints.copyTo(target, place.root, undefined);
  t.same(stateOf(target), stateOf(place.root), 'a fork begins with the same files');
  const fork = { threadId: 'fork', turnId: 'turn_001', workspacePath: target };
  all.checkpoints.begin(fork);
  await all.checkpoints.secure(fork);
  work((name) => join(target, name));
  await all.checkpoints.settle(fork);
  const merge = () => all.checkpoints.merge(fork, { threadId: 'thread', workspacePath: place.root });
  return { ...place, ...all, merge };
}

const withLine = (path: string, number: number, text: string): void =>
  writeFileSync(path, readFileSync(path, 'utf8').replace(`line ${number}`, text));

t.test('lines that the fork and the user changed are merged, and taken back as one change', async (t) => {
  const { at, root, read, merge, undo } = await forked(t, (inFork) => {
    withLine(inFork('lines.txt'), 1, 'by the fork');
    writeFileSync(inFork('same.bin'), Buffer.alloc(300_000, 8));
    rmSync(inFork('gone.txt'));
    mkdirSync(inFork('made'));
    writeFileSync(inFork('made/new.txt'), 'new');
  });
  withLine(at('lines.txt'), 7, 'by the user');
  const before = stateOf(root);
  const merged = await merge();
  t.match(merged, { kind: 'restored', restored: ['gone.txt', 'lines.txt', 'made', 'made/new.txt', 'same.bin'] });
  t.match(read('lines.txt'), /by the fork[\s\S]*by the user/);
  t.same([read('made/new.txt'), readFileSync(at('same.bin'))[0]], ['new', 8]);
  t.equal((await undo([merged.kind === 'restored' ? merged.restoreId : ''])).kind, 'restored');
  t.same(stateOf(root), before);
});

t.test('what both changed at the same place refuses the merge, and nothing changes', async (t) => {
  const { at, root, merge } = await forked(t, (inFork) => {
    withLine(inFork('lines.txt'), 1, 'by the fork');
    writeFileSync(inFork('gone.txt'), 'by the fork');
    writeFileSync(inFork('other.txt'), 'by the fork');
  });
  withLine(at('lines.txt'), 1, 'by the user');
  rmSync(at('gone.txt'));
  const before = stateOf(root);
  t.match(await merge(), {
    kind: 'refused',
    conflicts: [
      { path: 'gone.txt', change: 'deleted' },
      { path: 'lines.txt', change: 'modified' },
    ],
  });
  t.same(stateOf(root), before);
});
