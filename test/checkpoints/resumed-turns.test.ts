import { cpSync } from 'node:fs';
import t, { type Test } from 'tap';
import type { RestoreResult } from '../../src/checkpoints/index.ts';
import { makeWorkspace } from './git-programs.ts';
import {
  differing,
  isGit,
  openCheckpoints,
  type ResumedTurn,
  ResumedTurnProgram,
  type State,
  stateIn,
} from './resumed-turns.ts';
import { bench, numbersFrom } from './tree-of-files.ts';

/** Programs in `npm test`; 1,000 in `npm run bench -- checkpoints`. */
const programs = Number(process.env['ORATORIO_TEST_RESUMED_UNDO_RUNS'] ?? 200);
const seed = process.env['ORATORIO_TEST_SEED'] === 'random' ? Date.now() % 1_000_000 : 1;
const programsPerTree = 50;

/** Authors of the changes of one part, in order, and the state in which the user left it. */
interface Authors {
  readonly isOfTurn: boolean;
  readonly isOfUser: boolean;
  readonly leftByUser: string | undefined;
}

function authorsOf({ before, segments }: ResumedTurn, name: string): Authors {
  let [isOfTurn, isOfUser, last] = [false, false, before.get(name)];
  let leftByUser: string | undefined;
  for (const { by, state } of segments) {
    const now = state.get(name);
    if (now !== last && by === 'turn') isOfTurn = true;
    if (now !== last && by === 'user') [isOfUser, leftByUser] = [true, now];
    last = now;
  }
  return { isOfTurn, isOfUser, leftByUser };
}

/** Whether one part contains the other. Parts of a nested repository lie in its directory. */
function isRelated(path: string, name: string): boolean {
  const place = isGit(name) ? `${name.slice(4, name.indexOf(':'))}/.git` : name;
  return path === place || path.startsWith(`${place}/`) || place.startsWith(`${path}/`);
}

/** Repositories that a restore names as not, or not wholly, set back. */
function namedRepositories(result: RestoreResult): ReadonlySet<string> {
  if (result.kind === 'refused') return new Set();
  const { git, repositories = [], notCovered } = result;
  const named = new Set(notCovered.map(({ path }) => path.replace(/\/?\.git$/, '')));
  if (git && (!git.isRestored || git.left)) named.add('');
  for (const { path, isRestored, left } of repositories) if (!isRestored || left) named.add(path);
  return named;
}

/** Faults of an undo: changes of the user that it took, changes of the turn that it left. */
function faultsOf(turn: ResumedTurn, after: State, result: RestoreResult, conflicts: readonly string[]): string[] {
  const { before, segments } = turn;
  const end = segments.at(-1)?.state ?? before;
  const named = namedRepositories(result);
  const faults: string[] = [];
  for (const name of new Set(
    [before, after, ...segments.map(({ state }) => state)].flatMap((state) => [...state.keys()]),
  )) {
    const { isOfTurn, isOfUser, leftByUser } = authorsOf(turn, name);
    const now = after.get(name);
    // The turn itself has undone the change of the user, or the user that of the turn.
    if (isOfTurn && isOfUser && now === end.get(name) && now === before.get(name)) continue;
    const repository = isGit(name) ? name.slice(4, name.indexOf(':')) : undefined;
    if (repository !== undefined && named.has(repository) && now === end.get(name)) continue;
    if (conflicts.some((path) => isRelated(path, name))) continue;
    if (turn.rewritten.has(name) && now === end.get(name)) continue;
    // A directory of the turn stays for the entries that the user made in it, and for a repository that is named.
    const holdsOfUser = [...after.keys()].some((path) => path.startsWith(`${name}/`) && authorsOf(turn, path).isOfUser);
    if (isOfUser && now !== leftByUser) faults.push(`of the user: ${name}`);
    if (!isOfUser && now !== before.get(name) && !(isOfTurn && (holdsOfUser || named.has(name))))
      faults.push(`of the turn: ${name}`);
  }
  return faults;
}

/** Conflicts that no change of the user, no call at the death and no removal explains. */
function unexplained(turn: ResumedTurn, conflicts: readonly string[]): string[] {
  if (turn.deaths.some(({ isInCall }) => isInCall)) return [];
  const { before, segments, missing } = turn;
  const names = new Set([before, ...segments.map(({ state }) => state)].flatMap((state) => [...state.keys()]));
  const ofUser = [...names].filter((name) => authorsOf(turn, name).isOfUser);
  return conflicts.filter((path) => ![...missing, ...ofUser].some((name) => isRelated(path, name)));
}

async function run(t: Test, original: string, first: number, count: number) {
  const place = bench(t);
  cpSync(original, place.root, { recursive: true, verbatimSymlinks: true });
  let checkpoints = openCheckpoints(place.stores);
  t.teardown(() => checkpoints.close());
  const wrong: string[] = [];
  const counts = { restored: 0, refused: 0, mixed: 0, tookBack: 0 };
  for (let number = first; number < first + count; number += 1) {
    const random = numbersFrom(seed * 1_000_000 + number);
    const threadId = `thread_${number}`;
    const { checkpoints: last, ...turn } = await new ResumedTurnProgram(place, { threadId, random, checkpoints }).run();
    checkpoints = last;
    const end = turn.segments.at(-1)?.state ?? turn.before;
    const request = { threadId, workspacePath: place.root, turnIds: ['turn_001'], conversation: [] };
    const problem = (text: string, ...more: readonly unknown[]) =>
      wrong.push(
        [`${number}: ${text}`, JSON.stringify(turn.deaths), ...more.map((each) => JSON.stringify(each))].join('\n'),
      );
    let result = await checkpoints.restore({ ...request, force: false });
    let conflicts: readonly string[] = [];
    if (result.kind === 'refused') {
      counts.refused += 1;
      conflicts = result.conflicts.map(({ path }) => path);
      const moved = differing(end, stateIn(place.root));
      if (moved.length > 0) problem('a refused undo changed files', moved);
      const strange = unexplained(turn, conflicts);
      if (strange.length > 0) problem('a conflict without a reason', strange);
      result = await checkpoints.restore({ ...request, force: true });
    } else counts.restored += 1;
    const after = stateIn(place.root);
    const faults = faultsOf(turn, after, result, conflicts);
    if (faults.length > 0) problem('wrong', faults, result);
    const parts = [...end.keys()].map((name) => authorsOf(turn, name));
    if (parts.some(({ isOfTurn }) => isOfTurn) && parts.some(({ isOfUser }) => isOfUser)) counts.mixed += 1;
    if (number % 5 === 0 && result.kind === 'restored') {
      const { restoreId } = result;
      await checkpoints.restore({ ...request, turnIds: [restoreId], force: false });
      const files = differing(end, stateIn(place.root)).filter((name) => !isGit(name));
      if (files.length > 0) problem('an undo that is taken back left a difference', files);
      counts.tookBack += 1;
    }
  }
  return { wrong, counts };
}

t.test(
  `the undo of ${programs} random turns that were resumed after a death takes all of the turn, and nothing of the user`,
  async (t) => {
    const original = bench(t).root;
    makeWorkspace(original, 'own');
    const wrong: string[] = [];
    const sums = { restored: 0, refused: 0, mixed: 0, tookBack: 0 };
    const firsts = Array.from({ length: Math.ceil(programs / programsPerTree) }, (_, tree) => tree * programsPerTree);
    // Each program waits for the clock of the file system: trees wait side by side.
    const outcomes = firsts.map((first) => run(t, original, first, Math.min(programsPerTree, programs - first)));
    for (const outcome of await Promise.all(outcomes)) {
      wrong.push(...outcome.wrong);
      for (const key of ['restored', 'refused', 'mixed', 'tookBack'] as const) sums[key] += outcome.counts[key];
    }
    t.same(wrong.slice(0, 5), [], `${wrong.length} wrong`);
    t.ok(sums.restored > programs * 0.3, `control: many are restored unasked: ${JSON.stringify(sums)}`);
    t.ok(sums.refused > programs * 0.1, 'control: some ask');
    t.ok(sums.mixed > programs * 0.5, 'control: in most of them both the turn and the user made changes');
    t.comment(JSON.stringify(sums));
  },
);
