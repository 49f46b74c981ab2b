import { execFileSync } from 'node:child_process';
import t from 'tap';
import { bench, checkpointsOf } from './tree-of-files.ts';

t.test('the diff of a thread leaves out what was taken back', async (t) => {
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
