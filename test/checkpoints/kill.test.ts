import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { LocalEngines } from '../../src/checkpoints/index.ts';
import { program } from '../programs.ts';
import {
  fill,
  gitStateOf,
  type Kind,
  makeRepository,
  placesOf,
  stageOfUser,
  work,
  worktreesOf,
} from './killed-work.ts';
import { bench, limits, stateOf, TreeCheckpoints } from './tree-of-files.ts';

/** Rounds of each kind: 3 in the continuous integration; `ORATORIO_TEST_KILLS=200` for more. */
const rounds = Number(process.env['ORATORIO_TEST_KILLS'] ?? 3);
const node = [
  '--conditions=development',
  '--disable-warning=ExperimentalWarning',
  program('test/checkpoints/victim.ts'),
];

const ofTree = { treeId: 'tree', limits, ownDirectories: [], gitEnvironment: { PATH: process.env['PATH'] ?? '' } };

function filled(t: Test, kind: Kind) {
  const place = bench(t);
  mkdirSync(place.stores, { mode: 0o700 });
  if (kind !== 'merge') makeRepository(place.root, kind === 'worktree');
  fill(place.root);
  if (kind !== 'merge') stageOfUser(place.root);
  const git = kind === 'restore' || kind === 'worktree' ? gitStateOf(place.root) : '';
  return { ...place, ...placesOf(place), before: stateOf(place.root), git };
}
type Filled = ReturnType<typeof filled>;

/** The checkpoints of a workspace as the next start opens them. */
async function restarted(t: Test, { root, store, at, fork, conversation }: Filled) {
  const takenBack: string[] = [];
  const tree = new TreeCheckpoints({
    place: { ...ofTree, root, directory: store },
    engines: new LocalEngines(),
    rollback: (threadId, turnIds) => takenBack.push(threadId, ...turnIds),
    isInUse: (directory) => directory === fork && existsSync(conversation),
  });
  await tree.ready();
  const turns = await tree.ask('turns', 'thread');
  t.notOk(existsSync(at('.oratorio/restore')), 'nothing that was staged is left');
  t.notOk(
    turns.some(({ endSeq }) => endSeq === null),
    'no turn is open',
  );
  const undo = async (turnId: string) => {
    const order = { thread: 'thread', turns: [turnId], paths: undefined, force: false, conversation: [] };
    t.equal((await tree.restore(order)).kind, 'restored');
  };
  return { tree, turns, takenBack, undo };
}

const isSame = (a: readonly string[], b: readonly string[]): boolean => JSON.stringify(a) === JSON.stringify(b);

/** Kills the work at steps from the first to the last, as many as there are rounds. */
async function killEach(t: Test, kind: Kind, judge: (place: Filled, undisturbed: Filled) => Promise<boolean>) {
  const undisturbed = filled(t, kind);
  let steps = 0;
  await work(kind, undisturbed, () => {
    steps += 1;
  });
  const outcomes = { before: 0, after: 0 };
  for (let round = 0; round < rounds; round += 1) {
    const place = filled(t, kind);
    const killAt = rounds === 1 ? steps : 1 + Math.round((round * (steps - 1)) / (rounds - 1));
    const end = spawnSync(process.execPath, [...node, kind, place.root, place.stores, String(killAt)]);
    t.equal(end.signal, 'SIGKILL', `killed at step ${killAt} of ${steps}: ${end.stderr}`);
    outcomes[(await judge(place, undisturbed)) ? 'after' : 'before'] += 1;
  }
  t.ok(outcomes.before > 0 && outcomes.after > 0, JSON.stringify(outcomes));
  t.comment(`${kind}: ${steps} steps, ${JSON.stringify(outcomes)}`);
}

const restores = { restore: 'a turn and its restore', worktree: 'a turn in a worktree and its restore' } as const;
for (const [kind, title] of Object.entries(restores)) {
  t.test(`${title}, killed at any step, are as before or as after once the next start has recovered`, (t) =>
    killEach(t, kind as Kind, async (place) => {
      const { tree, turns, takenBack, undo } = await restarted(t, place);
      const isBefore = isSame(stateOf(place.root), place.before);
      const { git } = place;
      const isRestored = turns.some(({ turn }) => turn.startsWith('restore_'));
      if (isBefore) {
        // The conversation went with the files: by the killed process, or by the recovery.
        if (isRestored && takenBack.length > 0) t.same(takenBack, ['thread', 'turn_001']);
      } else {
        t.same([takenBack, turns.length], [[], 1], 'the turn and its conversation are there, and can be taken back');
        await undo('turn_001');
        t.same(stateOf(place.root), place.before);
      }
      t.equal(gitStateOf(place.root), git, 'HEAD, branches and the index went with the files');
      await tree.close();
      return isRestored;
    }),
  );
}

t.test('a fork that is killed at any step is whole, or gone once the next start has recovered', (t) =>
  killEach(t, 'fork', async (place, undisturbed) => {
    const { tree } = await restarted(t, place);
    t.same(stateOf(place.root), place.before, 'the workspace is as it was');
    const isWhole = existsSync(place.fork);
    if (isWhole) t.same(stateOf(place.fork), stateOf(undisturbed.fork));
    t.equal(existsSync(place.conversation), isWhole, 'no fork is left without a conversation');
    t.equal(worktreesOf(place.root).length, isWhole ? 2 : 1, 'nor a worktree of git without its directory');
    t.same(await tree.ask('openCopies'), []);
    await tree.close();
    return isWhole;
  }),
);

t.test('a fork that is brought back and killed at any step has changed the workspace as a whole, or not at all', (t) =>
  killEach(t, 'merge', async (place, undisturbed) => {
    const { tree, turns, undo } = await restarted(t, place);
    const merged = turns.find(({ turn }) => turn.startsWith('restore_'));
    const ofUser = place.before.filter((line) => !line.startsWith('/lines '));
    if (merged) {
      t.same(stateOf(place.root), stateOf(undisturbed.root));
      t.match(readFileSync(place.at('lines'), 'utf8'), /ONE[\s\S]*SEVEN/, 'lines of both sides are in it');
      await undo(merged.turn);
    }
    const now = stateOf(place.root).filter((line) => !line.startsWith('/lines '));
    t.same(now, ofUser, 'without it the workspace is as the user left it');
    t.match(readFileSync(place.at('lines'), 'utf8'), /^one\n/);
    await tree.close();
    const left = readdirSync(join(place.root, '..')).filter((name) => !['workspace', 'stores', 'fork'].includes(name));
    t.same(left, []);
    return merged !== undefined;
  }),
);
