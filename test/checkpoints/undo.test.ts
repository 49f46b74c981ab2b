import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import t from 'tap';
import { smallTreeEntries } from '../../src/checkpoints/limits.ts';
import { bench, checkpointsOf, stateOf } from './tree-of-files.ts';

t.test('undoing a turn restores the files from before it', async (t) => {
  const place = bench(t);
  place.write('keep.txt', 'keep');
  place.write('src/a.txt', 'before');
  place.write('.env', 'SECRET=1', 0o600);
  place.write('node_modules/m/index.js', 'module');
  place.write('.gitignore', 'node_modules\n');
  mkdirSync(place.at('empty'));
  symlinkSync('src/a.txt', place.at('link'));
  const before = stateOf(place.root);
  const { turn, undo, takenBack } = checkpointsOf(t, place);
  await turn('turn_001', () => {
    place.write('src/a.txt', 'after!');
    place.write('src/new/b.txt', 'new');
    rmSync(place.at('node_modules'), { recursive: true });
    rmSync(place.at('empty'), { recursive: true });
    rmSync(place.at('link'));
    mkdirSync(place.at('link'));
    chmodSync(place.at('.env'), 0o644);
    renameSync(place.at('keep.txt'), place.at('moved.txt'));
  });
  const after = stateOf(place.root);
  const result = await undo(['turn_001']);
  t.equal(result.kind, 'restored');
  t.same(stateOf(place.root), before);
  t.same(takenBack, [['thread', ['turn_001']]]);
  t.notOk(existsSync(place.at('.oratorio/restore')), 'nothing that was staged is left');

  t.test('the restore can be taken back itself', async (t) => {
    const again = await undo([result.kind === 'restored' ? result.restoreId : '']);
    t.equal(again.kind, 'restored');
    t.same(stateOf(place.root), after);
  });
});

t.test('changes of the user stay, before, between and after the turns', async (t) => {
  const place = bench(t);
  place.write('a.txt', 'a');
  place.write('mine.txt', '1');
  const { turn, undo } = checkpointsOf(t, place);
  await turn('turn_001', () => place.write('a.txt', 'a2'));
  place.write('mine.txt', '2');
  place.write('b.txt', 'by the user');
  await turn('turn_002', () => place.write('b.txt', 'by the agent'));
  place.write('later.txt', 'later');
  const result = await undo(['turn_001', 'turn_002']);
  t.match(result, { kind: 'restored', kept: ['later.txt', 'mine.txt'] });
  t.same(['a.txt', 'b.txt', 'mine.txt', 'later.txt'].map(place.read), ['a', 'by the user', '2', 'later']);
});

t.test('a file that the user changed since is a conflict, and nothing is restored without force', async (t) => {
  const place = bench(t);
  place.write('a.txt', 'a');
  place.write('b.txt', 'b');
  place.write('c.txt', 'c');
  const { turn, undo, takenBack } = checkpointsOf(t, place);
  await turn('turn_001', () => {
    for (const name of ['a.txt', 'b.txt', 'c.txt']) place.write(name, 'agent');
  });
  place.write('a.txt', 'user');
  rmSync(place.at('b.txt'));
  const state = stateOf(place.root);
  const refused = await undo(['turn_001']);
  t.match(refused, {
    kind: 'refused',
    conflicts: [
      { path: 'a.txt', change: 'modified', by: 'user' },
      { path: 'b.txt', change: 'deleted', by: 'user' },
    ],
  });
  t.same([stateOf(place.root), takenBack], [state, []]);
  t.equal((await undo(['turn_001'], { force: true })).kind, 'restored');
  t.same(['a.txt', 'b.txt', 'c.txt'].map(place.read), ['a', 'b', 'c']);
});

t.test('files that a turn will surely need are saved when it begins, not when it asks for them', async (t) => {
  const place = bench(t);
  place.write('a.txt', 'a');
  const { checkpoints, undo } = checkpointsOf(t, place);
  const turn = { threadId: 'thread', turnId: 'turn_001', workspacePath: place.root };
  checkpoints.begin(turn, 'certain');
  // Answered after the earlier requests.
  await checkpoints.list('thread', place.root);
  place.write('a.txt', 'changed');
  await checkpoints.secure(turn);
  await checkpoints.settle(turn);
  t.equal((await undo(['turn_001'])).kind, 'restored');
  t.equal(place.read('a.txt'), 'a');

  const refused = { ...turn, turnId: 'turn_002' };
  checkpoints.begin(refused, 'certain');
  t.equal(checkpoints.settle(refused), undefined, 'a turn that is refused waits for nothing');
  await setImmediate();
  t.same(
    (await checkpoints.list('thread', place.root)).filter(({ turnId }) => turnId === 'turn_002'),
    [],
  );
});

t.test(
  'the files of a large workspace are saved beside the first request, those of a small one with the first tool',
  async (t) => {
    for (const count of [smallTreeEntries + 1, 3]) {
      const place = bench(t);
      for (let number = 0; number < count; number += 1) writeFileSync(place.at(`f${number}`), '');
      const { checkpoints, turn } = checkpointsOf(t, place);
      await turn('turn_001', () => place.write('f0', 'first'));
      const second = { threadId: 'thread', turnId: 'turn_002', workspacePath: place.root };
      checkpoints.begin(second);
      const turns = async () => (await checkpoints.list('thread', place.root)).map(({ turnId }) => turnId);
      if (count > smallTreeEntries) while (!(await turns()).includes('turn_002')) await setImmediate();
      else for (let round = 0; round < 100; round += 1) await turns();
      t.equal((await turns()).includes('turn_002'), count > smallTreeEntries, `${count} files`);
      await checkpoints.settle(second);
    }
  },
);

t.test('another thread that changed the same file is named; other files of it stay', async (t) => {
  const place = bench(t);
  place.write('a.txt', 'a');
  const { turn, undo } = checkpointsOf(t, place);
  await turn('turn_001', () => place.write('a.txt', 'first'));
  await turn('turn_001', () => place.write('other.txt', 'other'), 'other');
  t.match(await undo(['turn_001']), { kind: 'restored', kept: ['other.txt'] });
  await turn('turn_002', () => place.write('a.txt', 'first again'));
  await turn('turn_002', () => place.write('a.txt', 'other'), 'other');
  t.match(await undo(['turn_002']), { kind: 'refused', conflicts: [{ path: 'a.txt', by: 'other' }] });
});

t.test('turns that overlap own their changes together', async (t) => {
  const place = bench(t);
  place.write('a.txt', 'a');
  const { checkpoints, undo } = checkpointsOf(t, place);
  const [one, two] = ['one', 'two'].map((threadId) => ({ threadId, turnId: 'turn_001', workspacePath: place.root }));
  if (!one || !two) throw new Error('two places are missing');
  for (const each of [one, two]) {
    checkpoints.begin(each);
    await checkpoints.secure(each);
  }
  place.write('a.txt', 'by one of them');
  await checkpoints.settle(one);
  await checkpoints.settle(two);
  t.match(await undo(['turn_001'], { threadId: 'one' }), {
    kind: 'refused',
    conflicts: [{ path: 'a.txt', by: 'two' }],
  });
});

t.test('a second undo does not take the first one for a change of the user', async (t) => {
  const place = bench(t);
  place.write('a.txt', '0');
  const before = stateOf(place.root);
  const { turn, undo } = checkpointsOf(t, place);
  for (const number of [1, 2, 3]) await turn(`turn_00${number}`, () => place.write('a.txt', String(number)));
  for (const [number, left] of [
    [3, '2'],
    [2, '1'],
    [1, '0'],
  ] as const) {
    t.equal((await undo([`turn_00${number}`])).kind, 'restored');
    t.equal(place.read('a.txt'), left);
  }
  t.same(stateOf(place.root), before);
});

t.test('a directory that the turn made stays when the user has put something into it', async (t) => {
  const place = bench(t);
  const { turn, undo } = checkpointsOf(t, place);
  await turn('turn_001', () => place.write('made/by-agent.txt', 'x'));
  place.write('made/by-user.txt', 'y');
  t.match(await undo(['turn_001']), { kind: 'restored', restored: ['made/by-agent.txt'], kept: ['made/by-user.txt'] });
  t.same(readdirSync(place.at('made')), ['by-user.txt']);
});

t.test('a restore of paths leaves the others', async (t) => {
  const place = bench(t);
  place.write('src/a.txt', 'a');
  place.write('b.txt', 'b');
  const { turn, undo } = checkpointsOf(t, place);
  await turn('turn_001', () => {
    rmSync(place.at('src'), { recursive: true });
    place.write('b.txt', 'agent');
  });
  t.match(await undo(['turn_001'], { paths: ['src/a.txt'] }), { kind: 'restored' });
  t.same([place.read('src/a.txt'), place.read('b.txt')], ['a', 'agent']);
});

t.test('stores are for their owner only, outside of the workspace', async (t) => {
  const place = bench(t);
  place.write('secret.txt', 'secret', 0o644);
  const { turn } = checkpointsOf(t, place);
  await turn('turn_001', () => place.write('b.txt', 'b'));
  const found = readdirSync(place.stores, { recursive: true, encoding: 'utf8' }).map((name) => {
    const stats = statSync(join(place.stores, name));
    return [stats.isDirectory(), stats.mode & 0o777] as const;
  });
  t.ok(found.length >= 4);
  for (const [isDirectory, mode] of found) t.equal(mode, isDirectory ? 0o700 : 0o600);
});

t.test('a turn that ends before its files are saved does not wait for them, and leaves no checkpoint', async (t) => {
  const place = bench(t);
  place.write('a.txt', 'a');
  const { checkpoints } = checkpointsOf(t, place);
  const turn = { threadId: 'thread', turnId: 'turn_001', workspacePath: place.root };
  checkpoints.begin(turn);
  const securing = checkpoints.secure(turn);
  t.equal(checkpoints.settle(turn), undefined);
  await securing;
  await setImmediate();
  t.same(await checkpoints.list('thread', place.root), []);

  checkpoints.begin({ ...turn, turnId: 'turn_002' }, 'none');
  t.equal(checkpoints.settle({ ...turn, turnId: 'turn_002' }), undefined, 'nor does one that only reads');
});
