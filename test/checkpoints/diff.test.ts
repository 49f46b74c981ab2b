import { execFileSync } from 'node:child_process';
import { readdirSync, writeFileSync } from 'node:fs';
import t from 'tap';
import { storedChanges } from '../../src/checkpoints/index.ts';
import { bench, checkpointsOf } from './tree-of-files.ts';

t.test('the diff of a thread leaves out undone changes', async (t) => {
  const place = bench(t);
  place.write('a.txt', 'one\n');
  place.write('b.txt', 'one\n');
  const { turn, undo, checkpoints } = checkpointsOf(t, place);
  const diff = (turnId?: string) => checkpoints.diff('thread', place.root, turnId, true);
  await turn('turn_001', () => place.write('a.txt', 'two\n'));
  const before = await diff();
  await turn('turn_002', () => {
    place.write('a.txt', 'three\n');
    place.write('b.txt', 'three\n');
  });
  const undone = await undo(['turn_002']);
  t.match(before.diff, /-one\n\+two\n/);
  t.same(await diff(), before, 'as if the turn had not been');
  t.match(
    (await diff('turn_002')).files,
    [{ path: 'a.txt' }, { path: 'b.txt' }],
    'the turn itself still shows its own',
  );

  await undo(['turn_001']);
  t.same((await diff()).files, [], 'regression: an undo is not shown in reverse');
  t.equal(place.read('a.txt'), 'one\n');

  await undo([undone.kind === 'restored' ? undone.restoreId : '']);
  const [a, b] = (await diff()).files;
  t.match([a, b], [{ path: 'a.txt' }, { path: 'b.txt' }], 'an undo that was taken back counts for nothing');
});

t.test('files are put back one by one, which a diff reports until something else changes them', async (t) => {
  const place = bench(t);
  for (const name of ['a.txt', 'b.txt', 'c.txt']) place.write(name, 'one\n');
  const { turn, undo, checkpoints } = checkpointsOf(t, place);
  const diff = (turnId?: string) => checkpoints.diff('thread', place.root, turnId, false);
  const revert = async (paths: string[], of = ['turn_001']) => {
    const answer = await undo(of, { paths });
    return answer.kind === 'restored' ? answer.restoreId : '';
  };
  await turn('turn_001', () => {
    for (const name of ['a.txt', 'b.txt', 'c.txt']) place.write(name, 'two\n');
  });
  t.same((await diff('turn_001')).putBack, []);
  await revert(['a.txt']);
  await revert(['b.txt']);
  t.same([place.read('a.txt'), place.read('b.txt'), place.read('c.txt')], ['one\n', 'one\n', 'two\n']);
  const [a, b] = [
    { path: 'a.txt', restoreId: 'restore_1' },
    { path: 'b.txt', restoreId: 'restore_2' },
  ];
  t.same((await diff('turn_001')).putBack, [a, b]);
  t.same((await diff()).putBack, [a, b], 'also of the whole thread');
  t.same(
    await checkpoints.turnsFrom('thread', place.root, 'turn_001'),
    ['turn_001'],
    'regression: a restore of single files leaves the turn to be restored',
  );
  t.equal((await checkpoints.list('thread', place.root)).at(0)?.isUndone, false);

  await revert(['a.txt'], ['restore_1']);
  t.equal(place.read('a.txt'), 'two\n');
  t.same((await diff('turn_001')).putBack, [b], 'what was taken back is a change again');
  await revert(['a.txt']);
  t.match(
    (await diff('turn_001')).putBack,
    [{ path: 'a.txt', restoreId: 'restore_4' }, b],
    'and can be put back again',
  );
  await turn('turn_002', () => place.write('b.txt', 'three\n'));
  t.match((await diff('turn_001')).putBack, [{ path: 'a.txt' }], 'the next turn changed it');
  await undo(['turn_001', 'turn_002']);
  t.same([(await diff()).putBack, place.read('c.txt')], [[], 'one\n'], 'turns that were taken back have none');
});

t.test('of many changes that no checkpoint covers a diff and a restore name the first, and count all', async (t) => {
  const place = bench(t);
  place.write('z.txt', 'z');
  const { turn, undo, checkpoints } = checkpointsOf(t, place);
  const names = Array.from({ length: 203 }, (_, number) => `pipe-${String(number).padStart(3, '0')}`);
  await turn('turn_001', () => {
    execFileSync('mkfifo', names, { cwd: place.root });
    place.write('z.txt', 'changed');
  });
  const diff = await checkpoints.diff('thread', place.root, 'turn_001', false);
  const undone = await undo(['turn_001']);
  for (const { notCovered, notCoveredTotal } of [diff, undone]) {
    t.same(
      notCovered.map(({ path }) => path),
      names.slice(0, 200),
    );
    t.equal(notCoveredTotal, 203);
  }
  t.match(diff.files, [{ path: 'z.txt' }]);
});

t.test('of many paths a restore and its refusal name the first, and count all', async (t) => {
  const place = bench(t);
  const { turn, undo } = checkpointsOf(t, place);
  const writeAll = (prefix: string, text: string) => {
    for (let number = 0; number < 203; number += 1) writeFileSync(place.at(`${prefix}-${number}`), text);
  };
  await turn('turn_001', () => writeAll('turn', 'turn'));
  writeAll('mine', 'mine');
  writeAll('turn', 'mine');
  const refused = await undo(['turn_001']);
  t.match(refused, { kind: 'refused', conflictsTotal: 203, keptTotal: 203 });
  t.same([refused.conflicts.length, refused.kept.length], [200, 200]);
  const forced = await undo(['turn_001'], { force: true });
  if (forced.kind !== 'restored') throw new Error('it was refused');
  t.match(forced, { restoredTotal: 203, keptTotal: 203, changedMeanwhileTotal: 0 });
  t.same([forced.restored.length, forced.kept.length], [200, 200]);
});

t.test('reading the changes of a closed store returns the same changes and writes nothing', async (t) => {
  const place = bench(t);
  place.write('a.txt', 'one\n');
  const { turn, checkpoints } = checkpointsOf(t, place);
  await turn('turn_001', () => place.write('a.txt', 'two\n'));
  const expected = await checkpoints.diff('thread', place.root, 'turn_001', true);
  await checkpoints.close();
  const request = { threadId: 'thread', turnId: 'turn_001', isUnified: true };
  const stored = () => storedChanges(place.stores, place.root, request);
  const files = () => readdirSync(place.stores, { recursive: true }).map(String).sort();
  const before = files();
  t.same(await stored(), expected);
  t.match(await storedChanges(place.stores, `${place.root}/elsewhere`, request), { files: [], diff: '' });
  t.same(files(), before, 'no log is created, which the next start would mistake for the log of a killed process');
});
