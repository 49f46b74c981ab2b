import { execFileSync } from 'node:child_process';
import { lstatSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { bench, checkpointsOf, stateOf } from './tree-of-files.ts';

/** A workspace and a fork of it, in which `work` is done as one turn. */
async function forked(t: Test, work: (at: (name: string) => string) => void) {
  const place = bench(t);
  place.write('lines.txt', Array.from({ length: 9 }, (_, at) => `line ${at}\n`).join(''));
  place.write('same.bin', Buffer.alloc(300_000, 7));
  place.write('gone.txt', 'gone');
  for (const name of ['deleted', 'replaced', 'used', 'full']) place.write(`${name}/old.txt`, 'old');
  const all = checkpointsOf(t, place);
  const target = join(place.root, '..', 'fork');
  mkdirSync(target, { mode: 0o700 });
  await all.checkpoints.copyTo(target, place.root, undefined);
  t.same(stateOf(target), stateOf(place.root), 'a fork begins with the same files');
  t.equal(lstatSync(join(target, 'same.bin')).nlink, 1, 'copied, never linked');
  const fork = { threadId: 'fork', turnId: 'turn_001', workspacePath: target };
  all.checkpoints.begin(fork);
  await all.checkpoints.secure(fork);
  work((name) => join(target, name));
  await all.checkpoints.settle(fork);
  const into = { threadId: 'thread', workspacePath: place.root };
  const merge = (force = false) => all.checkpoints.merge(fork, into, force);
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

t.test('a merge of changes at the same place is refused, and nothing changes', async (t) => {
  const { at, root, read, merge, undo } = await forked(t, (inFork) => {
    withLine(inFork('lines.txt'), 1, 'by the fork');
    writeFileSync(inFork('gone.txt'), 'by the fork');
    writeFileSync(inFork('other.txt'), 'by the fork');
  });
  withLine(at('lines.txt'), 1, 'by the user');
  rmSync(at('gone.txt'));
  const before = stateOf(root);
  const conflicts = [
    { path: 'gone.txt', change: 'deleted' },
    { path: 'lines.txt', change: 'modified' },
  ];
  t.match(await merge(), { kind: 'refused', conflicts });
  t.same(stateOf(root), before);

  const forced = await merge(true);
  t.match(forced, { kind: 'restored', conflicts, restored: ['gone.txt', 'lines.txt', 'other.txt'] });
  t.same([read('gone.txt'), read('other.txt')], ['by the fork', 'by the fork'], 'force takes the state of the fork');
  t.match(read('lines.txt'), /by the fork/);
  t.equal((await undo([forced.kind === 'restored' ? forced.restoreId : ''])).kind, 'restored');
  t.same(stateOf(root), before, 'and undo brings the changes of the user back');
});

t.test('directories that the user deleted, replaced or used do not break a merge', async (t) => {
  const { at, root, merge, undo, write } = await forked(t, (inFork) => {
    for (const name of ['deleted', 'replaced']) writeFileSync(inFork(`${name}/new.txt`), 'by the fork');
    for (const name of ['used', 'full']) rmSync(inFork(name), { recursive: true });
    writeFileSync(inFork('full'), 'a file now');
  });
  for (const name of ['deleted', 'replaced']) rmSync(at(name), { recursive: true });
  write('replaced', 'by the user');
  for (const name of ['used', 'full']) write(`${name}/mine.txt`, 'by the user');
  const before = stateOf(root);
  const conflicts = [
    { path: 'replaced', change: 'modified' },
    { path: 'full/mine.txt', change: 'created' },
  ];
  t.match(await merge(), { kind: 'refused', conflicts });
  t.same(stateOf(root), before);
  const forced = await merge(true);
  t.match(forced, { kind: 'restored' });
  t.match(
    stateOf(root).map((line) => line.replace(/ (\d+ \w+|\d+)$/, '')),
    [
      ...['/deleted directory', '/deleted/new.txt file', '/full file', '/gone.txt file', '/lines.txt file'],
      ...['/replaced directory', '/replaced/new.txt file', '/same.bin file', '/used directory', '/used/mine.txt file'],
    ],
  );
  t.equal((await undo([forced.kind === 'restored' ? forced.restoreId : ''])).kind, 'restored');
  t.same(stateOf(root), before);
});

t.test('an entry that no checkpoint holds is never overwritten', async (t) => {
  const { at, merge } = await forked(t, (inFork) => writeFileSync(inFork('gone.txt'), 'by the fork'));
  rmSync(at('gone.txt'));
  execFileSync('mkfifo', [at('gone.txt')]);
  t.match(await merge(), { kind: 'refused', conflicts: [{ path: 'gone.txt' }] });
  t.match(await merge(true), { kind: 'restored', restored: [], notCovered: [{ path: 'gone.txt', reason: 'special' }] });
  t.ok(lstatSync(at('gone.txt')).isFIFO());
});

t.test('changes by hand in a fork are merged, whenever they were made', async (t) => {
  const place = bench(t);
  for (const name of ['first', 'between', 'later', 'only']) place.write(`${name}.txt`, 'one\ntwo\nthree\n');
  place.write('large.bin', Buffer.alloc(2_000));
  const { checkpoints, undo } = checkpointsOf(t, place, { fileBytes: 1_000 });
  const into = { threadId: 'thread', workspacePath: place.root };
  const lay = async (name: string) => {
    const fork = { threadId: name, workspacePath: join(place.root, '..', name) };
    mkdirSync(fork.workspacePath, { mode: 0o700 });
    await checkpoints.copyTo(fork.workspacePath, place.root, undefined);
    const write = (path: string, text: string) => writeFileSync(join(fork.workspacePath, path), text);
    const turn = async (turnId: string, work: () => void) => {
      checkpoints.begin({ ...fork, turnId });
      await checkpoints.secure({ ...fork, turnId });
      work();
      await checkpoints.settle({ ...fork, turnId });
    };
    return { fork, write, turn };
  };
  const untouched = await lay('untouched');
  t.match(await checkpoints.merge(untouched.fork, into, false), { restored: [], notCovered: [] }, 'control');

  const byHand = await lay('by-hand');
  byHand.write('only.txt', 'ONE\ntwo\nthree\n');
  place.write('only.txt', 'one\ntwo\nTHREE\n');
  const merged = await checkpoints.merge(byHand.fork, into, false);
  t.match(merged, { kind: 'restored', restored: ['only.txt'] });
  t.equal(place.read('only.txt'), 'ONE\ntwo\nTHREE\n', 'line by line, in a fork without turns');
  await undo([merged.kind === 'restored' ? merged.restoreId : '']);
  t.equal(place.read('only.txt'), 'one\ntwo\nTHREE\n');

  const { fork, write, turn } = await lay('fork');
  write('first.txt', 'before the first turn\n');
  await turn('turn_001', () => write('made.txt', 'made'));
  write('between.txt', 'between the turns\n');
  await turn('turn_002', () => write('made.txt', 'made again'));
  write('later.txt', 'after the last turn\n');
  const restored = ['between.txt', 'first.txt', 'later.txt', 'made.txt'];
  t.match(await checkpoints.merge(fork, into, false), { kind: 'restored', restored });
  t.same(
    ['first', 'between', 'later', 'made'].map((name) => place.read(`${name}.txt`)),
    ['before the first turn\n', 'between the turns\n', 'after the last turn\n', 'made again'],
  );
});
