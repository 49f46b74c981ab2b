import { cpSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { Engine } from '../../src/checkpoints/engine.ts';
import { runGitIn } from '../../src/checkpoints/git.ts';
import { commandKinds, type Layout, makeWorkspace, operations, runFileProgram, runGitProgram } from './git-programs.ts';
import { PlainRepository, wholeRepository } from './plain-repository.ts';
import { gitIn } from './repositories.ts';
import { bench, limits, numbersFrom, stateOf } from './tree-of-files.ts';

/** Programs in `npm test`; `ORATORIO_TEST_GIT_UNDO_RUNS=20000` for a release. */
const programs = Number(process.env['ORATORIO_TEST_GIT_UNDO_RUNS'] ?? 2_000);
const seed = process.env['ORATORIO_TEST_SEED'] === 'random' ? Date.now() % 1_000_000 : 1;
const programsPerTree = 100;
/** Most turns, of one program each, that one undo takes back. */
const maxTurns = 3;
/** One program of so many is of git itself. */
const gitShare = 12;
const layouts: readonly Layout[] = ['own', 'above', 'own', 'linked', 'own', 'elsewhere'];

interface Whole {
  /** Files of the workspace. */
  readonly files: string;
  /** Each repository by the path of its `.git`, as a checkpoint names it. */
  readonly repositories: Readonly<Record<string, string>>;
}

const ownPath = (root: string, top: string): string => (top === root ? '.git' : '../.git');

/** Whole state of a workspace, read apart from the code under test. */
function wholeOf(root: string, top: string): Whole {
  const repositories: Record<string, string> = {};
  const add = (path: string, directory: string) => {
    const repository = PlainRepository.at(directory);
    if (repository) repositories[path] = wholeRepository(repository);
  };
  add(ownPath(root, top), top);
  const pointers: string[] = [];
  for (const name of readdirSync(root).sort()) {
    const path = join(root, name, '.git');
    if (!existsSync(path)) continue;
    add(`${name}/.git`, join(root, name));
    if (statSync(path).isFile()) pointers.push(`${name} ${readFileSync(path, 'utf8')}`);
  }
  return { files: JSON.stringify([stateOf(root), pointers]), repositories };
}

interface Outcome {
  readonly undos: number;
  /** Undos of programs that had changed something. */
  readonly changed: number;
  /** Repositories that stay in a part, and are named. */
  readonly named: number;
  readonly done: readonly string[];
  readonly wrong: readonly string[];
}

/** Makes workspaces; those that name no absolute path are copies of the first. */
function workspaces(t: Test): (top: string, layout: Layout) => string {
  const originals = new Map<Layout, string>();
  return (top, layout) => {
    if (layout === 'linked' || layout === 'elsewhere') return makeWorkspace(top, layout);
    const original = originals.get(layout) ?? bench(t).root;
    if (!originals.has(layout)) makeWorkspace(original, layout);
    originals.set(layout, original);
    cpSync(original, top, { recursive: true, verbatimSymlinks: true });
    return layout === 'above' ? join(top, 'app') : top;
  };
}

async function run(
  t: Test,
  make: ReturnType<typeof workspaces>,
  { first, count, layout }: { readonly first: number; readonly count: number; readonly layout: Layout },
): Promise<Outcome> {
  const place = bench(t);
  const [top, root] = [place.root, make(place.root, layout)];
  const git = runGitIn(root, { PATH: process.env['PATH'] ?? '' });
  const engine = new Engine({ root, directory: place.stores, limits, git });
  t.teardown(() => engine.close());
  const [wrong, done]: [string[], string[]] = [[], []];
  let [undos, changed, named] = [0, 0, 0];
  let before = wholeOf(root, top);
  for (let number = first; number < first + count; ) {
    const thread = `thread_${number}`;
    const random = numbersFrom(seed * 1_000_000 + number);
    const ran: string[] = [];
    const turns: string[] = [];
    for (let left = Math.min(1 + random(maxTurns), first + count - number); left > 0; left -= 1, number += 1) {
      const [last, turn] = [turns.at(-1), `turn_${number}`];
      // One mark ends a turn and begins the next.
      const ends = last === undefined ? [] : [{ edge: 'end' as const, thread, turn: last }];
      await engine.mark([...ends, { edge: 'start', thread, turn }]);
      ran.push(...(number % gitShare === 0 ? runGitProgram(root, random) : runFileProgram(root, top, random)));
      turns.push(turn);
    }
    await engine.mark([{ edge: 'end', thread, turn: turns.at(-1) ?? '' }]);
    done.push(...ran);
    const turned = wholeOf(root, top);
    const listed = new Set(engine.list(thread).flatMap(({ notCovered }) => notCovered.map(({ path }) => path)));
    const prepared = await engine.prepare({ thread, turns, paths: undefined, force: false, conversation: turns });
    const problem = (text: string, ...more: readonly unknown[]) =>
      wrong.push(
        [`${turns.join(' ')} (${layout}): ${text}`, ...ran, ...more.map((each) => JSON.stringify(each))].join('\n'),
      );
    if (prepared.number === undefined) {
      problem('refused', prepared.conflicts);
      break;
    }
    const result = await engine.conclude(prepared.number, engine.apply(prepared.number));
    const after = wholeOf(root, top);
    undos += 1;
    if (JSON.stringify(turned) !== JSON.stringify(before)) changed += 1;
    if (after.files !== before.files) problem('other files', before.files, after.files, result);
    for (const path of new Set([...Object.keys(before.repositories), ...Object.keys(after.repositories)])) {
      const states = [before, turned, after].map(({ repositories }) => repositories[path]);
      if (states[0] === states[2]) continue;
      const left =
        path === ownPath(root, top) ? result.git : result.repositories?.find((each) => `${each.path}/.git` === path);
      if (left === undefined || (left.isRestored && !left.left)) {
        problem(`${path} differs, and the result does not say so`, states, result);
      } else if (![...listed].some((each) => isPathOf(each, path, layout))) {
        problem(`${path} was not named before the undo`, [...listed], states, result);
      } else named += 1;
    }
    // The rest of one program is the beginning of the next.
    before = after;
  }
  return { undos, changed, named, done, wrong };
}

/** Whether a listed path names a repository; that of a workspace below it is named with its own directory. */
const isPathOf = (listed: string, path: string, layout: Layout): boolean =>
  listed === path || (layout === 'above' && path === '../.git' && listed.startsWith('../'));

t.test(`the undo of ${programs} random programs restores files and refs, or names the rest`, async (t) => {
  const all: Outcome[] = [];
  const make = workspaces(t);
  const byLayout = new Map<Layout, number>();
  for (let first = 0; first < programs; first += programsPerTree) {
    const count = Math.min(programsPerTree, programs - first);
    const layout = layouts[(first / programsPerTree) % layouts.length] ?? 'own';
    const outcome = await run(t, make, { first, count, layout });
    byLayout.set(layout, (byLayout.get(layout) ?? 0) + outcome.undos);
    all.push(outcome);
  }
  const wrong = all.flatMap((each) => each.wrong);
  t.same(wrong.slice(0, 5), [], `${wrong.length} wrong`);
  const sum = (of: (each: Outcome) => number) => all.reduce((total, each) => total + of(each), 0);
  const undos = sum((each) => each.undos);
  t.ok(sum(({ changed }) => changed) > undos * 0.9, 'control: nearly all programs changed something');
  const counts = new Map<string, number>();
  for (const kind of all.flatMap((each) => each.done)) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  const rare = Object.keys(operations).filter((kind) => (counts.get(kind) ?? 0) < programs / 80);
  t.same(rare, [], 'control: every operation occurs often');
  const rareCommands = commandKinds.filter((kind) => (counts.get(kind) ?? 0) < programs / 400);
  t.same(rareCommands, [], 'control: every command of git occurs');
  for (const layout of layouts) t.ok((byLayout.get(layout) ?? 0) >= undos / 10, `control: often with ${layout}`);
  const named = sum((each) => each.named);
  const { user, system } = process.cpuUsage();
  t.comment(
    `${undos} undos; ${named} repositories stay in a part and are named; ${Math.round((user + system) / 1_000)} ms`,
  );
});

t.test('the comparison notices everything that an undo may leave', (t) => {
  const place = bench(t);
  const root = makeWorkspace(place.root, 'own');
  const git = new PlainRepository(root);
  const lib = new PlainRepository(place.at('lib'));
  const losses: Readonly<Record<string, () => unknown>> = {
    byte: () => writeFileSync(place.at('a.txt'), 'A.txt\n'),
    tag: () => git.setRef('refs/tags/v-ü', undefined),
    HEAD: () => git.write('HEAD', 'ref: refs/heads/grün\n'),
    index: () => git.setIndex(git.index().slice(1)),
    'list of the stash': () => git.write('logs/refs/stash', undefined),
    configuration: () => git.write('config', ''),
    operation: () => git.write('MERGE_HEAD', 'x'),
    'ref of a nested repository': () => lib.setRef('refs/heads/x', lib.commit),
    submodule: () => rmSync(place.at('mod/.git')),
  };
  for (const [title, lose] of Object.entries(losses)) {
    const before = JSON.stringify(wholeOf(root, root));
    lose();
    t.not(JSON.stringify(wholeOf(root, root)), before, title);
  }
  t.end();
});

t.test('git reads the repositories that the programs write', (t) => {
  const place = bench(t);
  const root = makeWorkspace(place.root, 'own');
  const random = numbersFrom(1);
  for (let number = 0; number < 100; number += 1) runFileProgram(root, root, random);
  const plain = new PlainRepository(root);
  // A dangling symbolic ref is one of the operations, and an error for git.
  plain.setRef('refs/remotes/origin/HEAD', undefined);
  const git = gitIn(root);
  git('fsck', '--strict', '--no-dangling');
  const refs = git('for-each-ref', '--format=%(refname) %(objectname)').split('\n');
  t.same(refs, [...plain.refs()].map(([name, object]) => `${name} ${object}`).sort(), 'the same refs');
  const staged = plain
    .index()
    .map(({ path, mode, object, stage }) => `${mode.toString(8)} ${object} ${stage}\t${path}`);
  t.same(git('-c', 'core.quotePath=false', 'ls-files', '--stage').split('\n'), staged, 'the same index');
  t.end();
});
