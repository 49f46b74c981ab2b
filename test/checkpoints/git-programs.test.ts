import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { gitPlaceOf, placeIn } from '../../src/checkpoints/git-place.ts';
import { readRepository } from '../../src/checkpoints/git-read.ts';
import type { RestoreResult } from '../../src/checkpoints/index.ts';
import { indexPrint } from '../../src/checkpoints/index-print.ts';
import { makeWorkspace, runGitProgram, sweep } from './git-programs.ts';
import { gitIn } from './repositories.ts';
import { bench, checkpointsOf, numbersFrom, stateOf } from './tree-of-files.ts';

/** Programs in `npm test`; `ORATORIO_TEST_GIT_UNDO_RUNS=2000` runs the programs of a release. */
const programs = Number(process.env['ORATORIO_TEST_GIT_UNDO_RUNS'] ?? 120);
const seed = process.env['ORATORIO_TEST_SEED'] === 'random' ? Date.now() % 1_000_000 : 1;
const programsPerTree = 40;

/** Independent of the engine's own reading where it matters: refs as files, HEAD, the log of the stash and the entries of the index. */
function gitOf(workspace: string, directory: string): unknown {
  const place = directory === '' ? gitPlaceOf(workspace) : placeIn(workspace, directory);
  const state = place && readRepository(place);
  if (!place || !state) return undefined;
  const index = join(place.directory, 'index');
  const { head, refs, files } = state;
  const sorted = (all: object) => Object.entries(all).sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    head,
    refs: sorted(refs),
    files: sorted(files ?? {}),
    index: existsSync(index) ? indexPrint(readFileSync(index)) : null,
  };
}

const directories = ['', 'lib', 'mod', 'made0', 'made1'];

const wholeOf = (top: string, workspace: string) => ({
  files: JSON.stringify(stateOf(workspace)),
  git: directories.map((directory) => JSON.stringify(gitOf(workspace, directory))),
  entries: readdirSync(top).sort(),
});

/** Paths that were named before the undo, and parts that its result names. */
function namedIn(result: Extract<RestoreResult, { kind: 'restored' }>): ReadonlySet<string> {
  const named = new Set<string>();
  if (result.git?.isRestored === false) named.add('');
  for (const { path, isRestored } of result.repositories ?? []) if (!isRestored) named.add(path);
  return named;
}

interface Outcome {
  readonly changed: number;
  readonly named: number;
  readonly wrong: readonly string[];
}

async function run(t: Test, first: number, count: number, isBelow: boolean): Promise<Outcome> {
  const place = bench(t);
  makeWorkspace(place.root);
  const root = isBelow ? join(place.root, 'app') : place.root;
  const { turn, undo, checkpoints } = checkpointsOf(t, { ...place, root });
  const wrong: string[] = [];
  let [changed, named] = [0, 0];
  for (let number = first; number < first + count; number += 1) {
    const before = wholeOf(place.root, root);
    const id = `turn_${number}`;
    let script = '';
    await turn(id, () => {
      script = runGitProgram(root, numbersFrom(seed * 1_000_000 + number), 4);
    });
    const turned = wholeOf(place.root, root);
    if (JSON.stringify(turned) !== JSON.stringify(before)) changed += 1;
    const listed = (await checkpoints.list('thread', root)).find(({ turnId }) => turnId === id)?.notCovered ?? [];
    const result = await undo([id]);
    const problem = (text: string) => wrong.push(`${number}: ${text}\n${script}\n${JSON.stringify(result)}`);
    if (result.kind !== 'restored') {
      problem('refused');
      break;
    }
    const after = wholeOf(place.root, root);
    const inResult = namedIn(result);
    if (after.files !== before.files) problem('other files');
    for (const [at, directory] of directories.entries()) {
      if (after.git[at] === before.git[at]) continue;
      const path = directory === '' ? (isBelow ? '../.git' : '.git') : `${directory}/.git`;
      const isListed = listed.some((each) => each.path === path) || (directory === '' && !isBelow);
      if (!inResult.has(directory)) problem(`the repository in '${directory}' differs, and the result does not say so`);
      else if (!isListed) problem(`${path} was not named before the undo`);
      else named += 1;
    }
    // The rest of one program is the beginning of the next.
    sweep(root);
  }
  return { changed, named, wrong };
}

t.test(`the undo of ${programs} random programs restores files and refs, or names the rest`, async (t) => {
  const began = process.cpuUsage();
  const all: Outcome[] = [];
  for (let first = 0; first < programs; first += programsPerTree) {
    const count = Math.min(programsPerTree, programs - first);
    all.push(await run(t, first, count, (first / programsPerTree) % 4 === 3));
  }
  const sum = (of: (each: Outcome) => number) => all.reduce((total, each) => total + of(each), 0);
  t.same(
    all.flatMap(({ wrong }) => wrong),
    [],
  );
  t.ok(sum(({ changed }) => changed) > programs / 2, 'control: most programs changed something');
  const named = sum((each) => each.named);
  const { user, system } = process.cpuUsage(began);
  t.comment(
    `${named} repositories were named and stay; ${Math.round((user + system) / 1_000)} ms of processor time in this process`,
  );
});

t.test('the comparison notices a ref that an undo leaves', async (t) => {
  const place = bench(t);
  makeWorkspace(place.root);
  const before = wholeOf(place.root, place.root);
  gitIn(place.root)('tag', '--delete', 'v-ü');
  t.notSame(wholeOf(place.root, place.root), before);
  t.ok(statSync(place.at('.git')).isDirectory());
});
