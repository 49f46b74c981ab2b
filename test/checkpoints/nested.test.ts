import { cpSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { gitIn, repositoryOf } from './repositories.ts';
import { bench, checkpointsOf, stateOf } from './tree-of-files.ts';

const commit = (directory: string, name: string, text: string) => {
  writeFileSync(join(directory, name), text);
  gitIn(directory)('add', '--all');
  gitIn(directory)('commit', '--quiet', `--message=${text}`);
};

function initialize(directory: string, name: string, text: string): void {
  mkdirSync(directory, { recursive: true });
  gitIn(directory)('init', '--quiet', '--initial-branch=main');
  commit(directory, name, text);
}

/** Made once: a copy takes less than fifteen commands of git. */
const original = bench(t);
initialize(join(original.root, '..', 'source'), 's.txt', 'source');
gitIn(original.root)('init', '--quiet', '--initial-branch=main');
gitIn(original.root)('submodule', '--quiet', 'add', '../source', 'mod');
gitIn(original.root)('commit', '--quiet', '--message=first');
initialize(original.at('lib'), 'x.txt', 'unpushed');

/** A workspace with a repository in `lib` and a submodule in `mod`. */
function nested(t: Test) {
  const place = bench(t);
  cpSync(original.root, place.root, { recursive: true });
  const git = gitIn(place.root);
  // The index knows the times of the original.
  git('status');
  const make = (name: string) => initialize(place.at(name), 'x.txt', 'unpushed');
  const [lib, mod] = [place.at('lib'), place.at('mod')];
  // A section of the configuration makes `mod` a submodule in use.
  const settings = () => git('config', '--local', '--list');
  const whole = () => [stateOf(place.root), ...[place.root, lib, mod].map(repositoryOf), settings()];
  return { ...place, ...checkpointsOf(t, place), git, commit, make, lib, mod, whole };
}

type Place = ReturnType<typeof nested>;

const cases: readonly { title: string; path: string; turn: (place: Place) => void; isNested?: true }[] = [
  {
    title: 'a removed nested repository comes back with its commits',
    path: 'lib/.git',
    turn: ({ lib }) => rmSync(lib, { recursive: true }),
  },
  {
    title: 'a removed repository comes back when its files stayed',
    path: 'lib/.git',
    turn: ({ lib }) => rmSync(join(lib, '.git'), { recursive: true }),
  },
  {
    title: 'a submodule that was taken out is a submodule again',
    path: 'mod/.git',
    turn: ({ git }) => git('submodule', 'deinit', '--force', 'mod'),
  },
  {
    title: 'a commit in a submodule is taken back',
    path: 'mod/.git',
    turn: ({ commit, mod }) => commit(mod, 't.txt', 'turn'),
    isNested: true,
  },
  {
    title: 'a commit in a nested repository is taken back',
    path: 'lib/.git',
    turn: ({ commit, lib }) => commit(lib, 't.txt', 'turn'),
    isNested: true,
  },
  {
    title: 'stash and branches of a nested repository are set back',
    path: 'lib/.git',
    turn: ({ lib }) => {
      writeFileSync(join(lib, 'x.txt'), 'changed');
      gitIn(lib)('stash', '--quiet');
      gitIn(lib)('checkout', '--quiet', '-b', 'grün');
    },
    isNested: true,
  },
];

t.test('nested repositories and submodules are named before and after an undo, and set back', async (t) => {
  const place = nested(t);
  for (const [number, { title, path, turn: work, isNested }] of cases.entries()) {
    await t.test(title, async (t) => {
      const { turn, undo, checkpoints, root, whole } = place;
      const before = whole();
      const id = `turn_${number}`;
      await turn(id, () => work(place));
      t.notSame(tried(whole), before, 'control: the turn changed something');
      const named = [{ path, reason: 'repository' }];
      const listed = (await checkpoints.list('thread', root)).find(({ turnId }) => turnId === id);
      t.match(listed, { notCovered: named });
      t.match(await checkpoints.diff('thread', root, id, true), { notCovered: named });
      const undone = await undo([id]);
      t.match(undone, { kind: 'restored', notCovered: [] });
      const result = undone.kind === 'restored' ? undone : undefined;
      if (isNested) t.match(result?.repositories, [{ path: path.replace('/.git', ''), isRestored: true }]);
      else t.ok(result?.restored.includes(path), 'the repository is among the restored');
      t.same(whole(), before);
    });
  }
  t.match(place.git('submodule', 'status'), /^[0-9a-f]{40} mod/);
});

const tried = (work: () => unknown) => {
  try {
    return work();
  } catch {
    return undefined;
  }
};

t.test('a repository that the turn made in a directory goes, unless the user has used it since', async (t) => {
  const { make, commit, at, turn, undo } = nested(t);
  await turn('turn_001', () => make('made'));
  t.equal((await undo(['turn_001'])).kind, 'restored');
  t.notOk(existsSync(at('made')));
  await turn('turn_002', () => make('used'));
  commit(at('used'), 'mine.txt', 'mine');
  const undone = await undo(['turn_002']);
  t.match(undone, {
    kind: 'restored',
    kept: ['used/.git', 'used/mine.txt'],
    notCovered: [{ path: 'used/.git', reason: 'repository' }],
    repositories: [{ path: 'used', moved: ['.git'], isRestored: false }],
  });
  t.equal(gitIn(at('used'))('log', '-1', '--format=%s'), 'mine');
});

t.test('a nested repository that is too large to be saved is named when it is gone', async (t) => {
  const { lib, at, write, turn, undo, checkpoints, root } = nested(t);
  for (let number = 0; number < 1_001; number += 1) write(`lib/.git/many/${number}`, '');
  await turn('turn_001', () => rmSync(lib, { recursive: true }));
  const named = [{ path: 'lib/.git', reason: 'repository' }];
  t.match(await checkpoints.list('thread', root), [{ notCovered: named }]);
  t.match(await undo(['turn_001']), {
    kind: 'restored',
    notCovered: named,
    repositories: [{ path: 'lib', isRestored: false }],
  });
  t.same([existsSync(at('lib/x.txt')), existsSync(at('lib/.git'))], [true, false]);
});

t.test('a nested repository that no turn changed is not named', async (t) => {
  const { write, turn, undo, checkpoints, root } = nested(t);
  await turn('turn_001', () => write('a.txt', 'a'));
  t.match(await checkpoints.list('thread', root), [{ notCovered: [], notCoveredTotal: 0 }]);
  const undone = await undo(['turn_001']);
  t.match(undone, { notCovered: [] });
  t.notOk('repositories' in undone);
});
