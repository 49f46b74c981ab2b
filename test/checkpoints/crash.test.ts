import { appendFileSync, existsSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { activityIn, lastActivity } from '../../src/checkpoints/activity.ts';
import { Engine } from '../../src/checkpoints/engine.ts';
import { runGitIn } from '../../src/checkpoints/git.ts';
import { racyMs } from '../../src/checkpoints/limits.ts';
import { gitIn } from './repositories.ts';
import { bench, checkpointsOf, limits } from './tree-of-files.ts';

const turn = { thread: 'thread', turn: 'turn_001' };
const order = { thread: 'thread', turns: ['turn_001'], paths: undefined, conversation: ['turn_001'] };

/** A turn whose server dies: `during` is its work, `after` is done before the next start. @param isWorking whether a call ran at the end */
async function crashed(
  t: Test,
  {
    isWorking,
    prepare,
    during,
    after,
  }: {
    readonly isWorking: boolean;
    readonly prepare?: (place: ReturnType<typeof bench>) => void;
    readonly during: (place: ReturnType<typeof bench>) => void;
    readonly after: (place: ReturnType<typeof bench>) => void;
  },
) {
  const place = bench(t);
  prepare?.(place);
  const git = runGitIn(place.root, { PATH: process.env['PATH'] ?? '' });
  const open = () => new Engine({ root: place.root, directory: place.stores, limits, git });
  const dead = open();
  await dead.mark([{ edge: 'start', ...turn }]);
  during(place);
  const at = Date.now();
  const note = { at, working: isWorking ? ['thread turn_001'] : [] };
  writeFileSync(activityIn(place.stores), `${JSON.stringify(note)}\n`);
  dead.close();
  while (clockOf(place.stores) <= at + racyMs) await setImmediate();
  after(place);
  const engine = open();
  t.teardown(() => engine.close());
  await engine.markDeath({});
  const undo = async (force = false) => {
    const prepared = await engine.prepare({ ...order, force });
    if (prepared.number === undefined) return { prepared, outcome: undefined };
    return { prepared, outcome: await engine.conclude(prepared.number, engine.apply(prepared.number)) };
  };
  return { ...place, undo };
}

/** Time of the file system, whose clock moves in steps of some milliseconds. */
function clockOf(directory: string): number {
  const probe = join(directory, 'probe');
  writeFileSync(probe, '');
  return statSync(probe).ctimeMs;
}

const isThere = (place: { at(path: string): string }, ...names: string[]) =>
  names.map((name) => existsSync(place.at(name)));

t.test('the undo of a crashed turn keeps files that the user wrote after the crash', async (t) => {
  const place = await crashed(t, {
    isWorking: false,
    prepare: ({ write }) => write('notes.txt', 'base\n'),
    during: ({ write }) => {
      write('made.txt', 'a');
      write('dir/made.txt', 'a');
    },
    after: ({ write, at }) => {
      write('mine.txt', 'mine');
      appendFileSync(at('notes.txt'), 'mine\n');
    },
  });
  const { outcome } = await place.undo();
  t.match(outcome, { kept: ['mine.txt', 'notes.txt'], conflicts: [] });
  t.same(isThere(place, 'made.txt', 'dir', 'mine.txt'), [false, false, true]);
  t.equal(place.read('notes.txt'), 'base\nmine\n');
});

t.test('the undo of a turn whose command ran at the crash asks before it takes later changes back', async (t) => {
  const place = await crashed(t, {
    isWorking: true,
    during: ({ write }) => write('made.txt', 'a'),
    after: ({ write }) => write('mine.txt', 'mine'),
  });
  const { prepared } = await place.undo();
  t.match(prepared, { number: undefined, conflicts: [{ path: 'mine.txt', change: 'created', by: 'user' }] });
  t.same(isThere(place, 'made.txt', 'mine.txt'), [true, true], 'nothing was restored');
  await place.undo(true);
  t.same(isThere(place, 'made.txt', 'mine.txt'), [false, false], 'with consent all of it is');
});

t.test('a file that the user changed again after the crash is not overwritten', async (t) => {
  for (const isWorking of [false, true]) {
    const place = await crashed(t, {
      isWorking,
      prepare: ({ write }) => write('a.txt', 'base\n'),
      during: ({ write }) => write('a.txt', 'turn\n'),
      after: ({ at }) => appendFileSync(at('a.txt'), 'mine\n'),
    });
    await place.undo();
    t.equal(place.read('a.txt'), 'turn\nmine\n');
  }
});

t.test('a file that was deleted in a directory which changed after the crash asks', async (t) => {
  const place = await crashed(t, {
    isWorking: false,
    prepare: ({ write }) => {
      write('a/gone.txt', 'a');
      write('b/gone.txt', 'b');
    },
    during: ({ at }) => {
      rmSync(at('a/gone.txt'));
      rmSync(at('b/gone.txt'));
    },
    after: ({ write }) => write('b/mine.txt', 'mine'),
  });
  const { prepared } = await place.undo();
  t.match(prepared, { number: undefined, conflicts: [{ path: 'b/gone.txt', change: 'deleted', by: 'user' }] });
  await place.undo(true);
  t.same(isThere(place, 'a/gone.txt', 'b/gone.txt', 'b/mine.txt'), [true, true, true]);
});

t.test('without a sign of life every change since the start of a crashed turn asks', async (t) => {
  const place = await crashed(t, {
    isWorking: false,
    during: ({ write }) => write('made.txt', 'a'),
    after: ({ stores }) => rmSync(activityIn(stores)),
  });
  t.match((await place.undo()).prepared, { number: undefined, conflicts: [{ path: 'made.txt' }] });
});

t.test('a commit that the user made after the crash stays', async (t) => {
  const place = await crashed(t, {
    isWorking: false,
    prepare: ({ root, write }) => {
      write('a.txt', 'a');
      gitIn(root)('init', '--quiet', '--initial-branch=main');
      gitIn(root)('add', '.');
      gitIn(root)('commit', '--quiet', '--message=first');
    },
    during: ({ write }) => write('a.txt', 'turn'),
    after: ({ root }) => gitIn(root)('commit', '--quiet', '--all', '--message=mine'),
  });
  const { outcome } = await place.undo();
  t.match(outcome, { git: { isRestored: false, reason: 'it may have been changed after the server had ended' } });
  t.equal(gitIn(place.root)('log', '-1', '--format=%s'), 'mine');
  t.equal(place.read('a.txt'), 'a', 'control: the change of the turn is taken back');
});

t.test('the commit of a crashed turn is taken back when nothing changed after the crash', async (t) => {
  const place = await crashed(t, {
    isWorking: true,
    prepare: ({ root, write }) => {
      write('a.txt', 'a');
      gitIn(root)('init', '--quiet', '--initial-branch=main');
      gitIn(root)('add', '.');
      gitIn(root)('commit', '--quiet', '--message=first');
    },
    during: ({ root, write }) => {
      write('a.txt', 'turn');
      gitIn(root)('commit', '--quiet', '--all', '--message=of the turn');
    },
    after: () => {},
  });
  t.match((await place.undo()).outcome, { git: { isRestored: true }, conflicts: [] });
  t.equal(gitIn(join(place.root))('log', '-1', '--format=%s'), 'first');
});

t.test('calls of a turn leave a note of their beginning and end', async (t) => {
  const place = bench(t);
  const { checkpoints } = checkpointsOf(t, place);
  const call = { threadId: 'thread', turnId: 'turn_001', workspacePath: place.root };
  checkpoints.begin(call);
  await checkpoints.secure(call);
  const [store = ''] = readdirSync(place.stores);
  const note = () => lastActivity(join(place.stores, store));
  t.equal(note(), undefined, 'control: nothing ran');
  const [first, second] = [checkpoints.working(call), checkpoints.working(call)];
  t.equal(note()?.isWorking(turn), true);
  first();
  first();
  t.equal(note()?.isWorking(turn), true, 'one call still runs');
  second();
  t.equal(note()?.isWorking(turn), false);
  t.ok((note()?.at ?? 0) <= Date.now());
  await checkpoints.settle(call);
});
