import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { gitIn, repository, repositoryOf } from './repositories.ts';
import { bench, checkpointsOf, stateOf } from './tree-of-files.ts';

type Place = ReturnType<typeof repository>;

interface Case {
  readonly title: string;
  readonly before: (place: Place) => void;
  readonly turn: (place: Place) => void;
  /** The undo is taken back, too. */
  readonly isForthChecked?: true;
}

const stashed = ({ write, git }: Place, text: string) => {
  write('b.txt', text);
  git('stash', '--quiet', '--include-untracked');
};
const secondCommit = ({ write, git }: Place) => {
  write('a.txt', 'two');
  git('commit', '--quiet', '--all', '--message=second');
};
/** Makes a branch whose commit conflicts with that of `main`. */
const diverge = (place: Place) => {
  const { git, write } = place;
  git('branch', 'other');
  secondCommit(place);
  git('checkout', '--quiet', 'other');
  write('a.txt', 'another');
  git('commit', '--quiet', '--all', '--message=other');
  git('checkout', '--quiet', 'main');
};
const nothing = () => {};

const cases: readonly Case[] = [
  {
    title: 'a popped stash is there again',
    before: (place) => stashed(place, 'precious'),
    turn: ({ git }) => git('stash', 'pop'),
  },
  {
    title: 'a dropped stash is there again',
    before: (place) => stashed(place, 'precious'),
    turn: ({ git }) => git('stash', 'drop'),
  },
  {
    title: 'a list of stashes keeps its order',
    before: (place) => ['one', 'two', 'three'].map((text) => stashed(place, text)),
    turn: ({ git }) => git('stash', 'drop', 'stash@{1}'),
    isForthChecked: true,
  },
  {
    title: 'a cleared list of stashes is there again',
    before: (place) => ['one', 'two'].map((text) => stashed(place, text)),
    turn: ({ git }) => git('stash', 'clear'),
  },
  {
    title: 'a stash that the turn made goes',
    before: ({ write }) => write('b.txt', 'mine'),
    turn: ({ git }) => git('stash', '--include-untracked'),
  },
  { title: 'a second stash goes', before: (place) => stashed(place, 'one'), turn: (place) => stashed(place, 'two') },
  {
    title: 'a deleted tag is there again',
    before: ({ git }) => git('tag', '--annotate', '--message=x', 'v1'),
    turn: ({ git }) => git('tag', '--delete', 'v1'),
  },
  {
    title: 'a moved tag is set back',
    before: ({ git }) => git('tag', 'v1'),
    turn: (place) => [secondCommit(place), place.git('tag', '--force', 'v1')],
  },
  {
    title: 'a deleted remote ref is there again',
    before: ({ git }) => git('update-ref', 'refs/remotes/origin/main', 'HEAD'),
    turn: ({ git }) => git('update-ref', '-d', 'refs/remotes/origin/main'),
  },
  {
    title: 'the symbolic ref of a remote is set back',
    before: ({ git }) => [
      git('update-ref', 'refs/remotes/origin/main', 'HEAD'),
      git('symbolic-ref', 'refs/remotes/origin/HEAD', 'refs/remotes/origin/main'),
    ],
    turn: ({ git }) => git('symbolic-ref', '--delete', 'refs/remotes/origin/HEAD'),
  },
  {
    title: 'notes are set back',
    before: ({ git }) => git('notes', 'add', '--message=mine', 'HEAD'),
    turn: ({ git }) => git('notes', 'remove', 'HEAD'),
  },
  {
    title: 'a renamed branch has its name back',
    before: ({ git }) => git('branch', 'old'),
    turn: ({ git }) => git('branch', '--move', 'old', 'new'),
  },
  {
    title: 'the renamed present branch has its name back',
    before: nothing,
    turn: ({ git }) => git('branch', '--move', 'main', 'main/below'),
  },
  {
    title: 'packed refs are set back',
    before: ({ git }) => [git('tag', 'v1'), git('branch', 'x')],
    turn: ({ git }) => [git('pack-refs', '--all'), git('tag', '--delete', 'v1'), git('branch', '--delete', 'x')],
  },
  ...['grün', '日本', 'ветка/e\u0301', '🌿', 'a"b'].flatMap((name): Case[] => [
    {
      title: `the deleted branch ${name} is there again`,
      before: ({ git }) => git('branch', name),
      turn: ({ git }) => git('branch', '--delete', '--force', name),
    },
    {
      title: `a commit on ${name} is taken back`,
      before: ({ git }) => git('checkout', '--quiet', '-b', name),
      turn: secondCommit,
    },
  ]),
];

for (const { title, before, turn: work, isForthChecked = false } of cases) {
  t.test(title, async (t) => {
    const place = repository(t);
    before(place);
    const [files, refs] = [stateOf(place.root), repositoryOf(place.root)];
    await place.turn('turn_001', () => work(place));
    const after = [stateOf(place.root), repositoryOf(place.root)];
    t.not(after[1], refs, 'control: the turn moved something');
    const undone = await place.undo(['turn_001']);
    t.match(undone, { kind: 'restored', git: { isRestored: true } });
    t.same([stateOf(place.root), repositoryOf(place.root)], [files, refs]);
    if (!isForthChecked) return;
    await place.undo([undone.kind === 'restored' ? undone.restoreId : '']);
    t.same([stateOf(place.root), repositoryOf(place.root)], after, 'and forth');
  });
}

t.test('names of branches that are not UTF-8 are set back as bytes', async (t) => {
  const place = repository(t);
  const sh = (script: string) => execFileSync('bash', ['-c', script], { cwd: place.root, encoding: 'latin1' });
  sh("git branch $'gr\\xfcn'; git checkout --quiet -b $'\\xff\\xfe'");
  const refs = sh('git for-each-ref; cat .git/HEAD');
  await place.turn('turn_001', () => {
    sh("git branch --quiet -D $'gr\\xfcn'");
    secondCommit(place);
    place.git('checkout', '--quiet', 'main');
  });
  t.match(await place.undo(['turn_001']), { git: { isRestored: true } });
  t.equal(sh('git for-each-ref; cat .git/HEAD'), refs);
});

t.test('a stash that the user changed since stays, named with the command that brings it back', async (t) => {
  const place = repository(t);
  stashed(place, 'precious');
  const commit = place.git('rev-parse', 'refs/stash');
  place.git('tag', 'v1');
  await place.turn('turn_001', () => [place.git('stash', 'drop'), place.git('tag', '--delete', 'v1')]);
  stashed(place, 'mine');
  const mine = place.git('stash', 'list');
  const left = [{ name: 'refs/stash', reason: 'refs/stash was moved since', command: `git stash store ${commit}` }];
  t.match(await place.undo(['turn_001']), { git: { moved: ['refs/stash', 'refs/tags/v1'], isRestored: false, left } });
  t.equal(place.git('stash', 'list'), mine);
  t.equal(place.git('rev-parse', 'v1'), place.git('rev-parse', 'HEAD'), 'control: the tag is set back');
  place.git('stash', 'store', commit);
  t.equal(place.git('show', 'stash@{0}^3:b.txt'), 'precious', 'the command brings it back');
});

t.test('more than 20,000 refs are not saved, and the undo of a commit reports that they stay', async (t) => {
  for (const count of [20_001, 100]) {
    const { root, git, write, turn, undo } = repository(t);
    const commit = git('rev-parse', 'HEAD');
    const refs = Array.from({ length: count }, (_, n) => `${commit} refs/tags/t${String(n).padStart(5, '0')}\n`);
    write('.git/packed-refs', `# pack-refs with: peeled fully-peeled sorted \n${refs.join('')}`);
    await turn('turn_001', () => secondCommit({ write, git } as Place));
    const result = await undo(['turn_001']);
    t.equal(result.kind, 'restored');
    t.equal(
      gitIn(root)('rev-parse', 'HEAD') === commit,
      count === 100,
      JSON.stringify(result.kind === 'restored' && result.git),
    );
  }
});

t.test('an index of more than 64 MiB stays, and the undo names it', async (t) => {
  for (const mib of [65, 1]) {
    const { root, at, git, write, turn, undo } = repository(t);
    write('b.txt', 'b');
    const pad = () => {
      // Adds an extension that git skips. Git does not verify a checksum of zeros.
      const bytes = readFileSync(at('.git/index'));
      const head = Buffer.alloc(8, 'ORAT');
      head.writeUInt32BE(mib * 2 ** 20, 4);
      const padded = Buffer.concat([bytes.subarray(0, -20), head, Buffer.alloc(mib * 2 ** 20), Buffer.alloc(20)]);
      writeFileSync(at('.git/index'), padded);
    };
    pad();
    await turn('turn_001', () => {
      git('add', 'b.txt');
      pad();
    });
    const result = await undo(['turn_001']);
    t.equal(result.kind, 'restored');
    t.equal(
      gitIn(root)('ls-files', 'b.txt') === '',
      mib === 1,
      JSON.stringify(result.kind === 'restored' && result.git),
    );
  }
});

t.test('a ref that the user made since does not keep the others', async (t) => {
  const place = repository(t);
  const first = place.git('rev-parse', 'HEAD');
  await place.turn('turn_001', () => secondCommit(place));
  place.git('branch', 'mine');
  t.match(await place.undo(['turn_001']), { git: { moved: ['refs/heads/main', 'index'], isRestored: true } });
  t.equal(place.git('rev-parse', 'HEAD'), first);
  t.not(place.git('rev-parse', 'mine'), first);
});

for (const [title, begin] of [
  ['merge', ['merge', 'other']],
  ['cherry-pick', ['cherry-pick', 'other']],
  ['rebase', ['rebase', 'other']],
] as const) {
  t.test(`a ${title} that the turn began and left under way is taken back`, async (t) => {
    const place = repository(t);
    diverge(place);
    const before = [stateOf(place.root), repositoryOf(place.root), place.git('status')];
    await place.turn('turn_001', () => t.throws(() => place.git(...begin), 'it stops at a conflict'));
    t.match(await place.undo(['turn_001']), { git: { isRestored: true } });
    t.same([stateOf(place.root), repositoryOf(place.root), place.git('status')], before);
    t.notOk(['MERGE_HEAD', 'CHERRY_PICK_HEAD', 'rebase-merge'].some((name) => existsSync(place.at(`.git/${name}`))));
  });
}

t.test('a merge of the user that the turn concluded is under way again', async (t) => {
  const place = repository(t);
  diverge(place);
  t.throws(() => place.git('merge', 'other'));
  const before = [stateOf(place.root), repositoryOf(place.root), place.git('status')];
  await place.turn('turn_001', () => {
    place.write('a.txt', 'both');
    place.git('commit', '--quiet', '--all', '--no-edit');
  });
  t.match(await place.undo(['turn_001']), { git: { isRestored: true } });
  t.same([stateOf(place.root), repositoryOf(place.root), place.git('status')], before);
});

/** A workspace below a repository, or below a worktree of one. */
function workspaceBelow(t: Test, isWorktree = false) {
  const place = bench(t);
  const top = join(place.root, '..');
  const main = isWorktree ? join(place.stores, 'main') : top;
  mkdirSync(main, { recursive: true });
  gitIn(main)('init', '--quiet', '--initial-branch=main');
  if (isWorktree) {
    gitIn(main)('commit', '--quiet', '--allow-empty', '--message=zero');
    rmSync(place.root, { recursive: true });
    gitIn(main)('worktree', 'add', '--quiet', '-b', 'work', join(top, 'tree'));
  }
  const root = isWorktree ? join(top, 'tree', 'app') : place.root;
  const own = { ...place, root, stores: join(place.stores, 'own') };
  const write = (name: string, text: string) => writeFileSync(join(root, name), text);
  mkdirSync(root, { recursive: true });
  write('a.txt', 'one');
  const git = gitIn(root);
  git('add', '.');
  git('commit', '--quiet', '--message=first');
  git('tag', 'v1');
  write('a.txt', 'stashed');
  git('stash', '--quiet');
  return { root, write, git, ...checkpointsOf(t, own) };
}

type Below = ReturnType<typeof workspaceBelow>;

const stays = 'the repository is above the workspace: it stays';
const aboveCases: readonly { title: string; turn: (place: Below) => void; moved: string[]; command?: RegExp }[] = [
  {
    title: 'a commit',
    turn: ({ git, write }) => [write('a.txt', 'two'), git('commit', '--quiet', '--all', '--message=second')],
    moved: ['refs/heads/main', 'index'],
    command: /^git update-ref refs\/heads\/main [0-9a-f]{40}$/,
  },
  { title: 'the index', turn: ({ git, write }) => [write('b.txt', 'new'), git('add', 'b.txt')], moved: ['index'] },
  {
    title: 'a dropped stash',
    turn: ({ git }) => git('stash', 'drop', '--quiet'),
    moved: ['refs/stash'],
    command: /^git stash store [0-9a-f]{40}$/,
  },
  {
    title: 'a switch to another branch',
    turn: ({ git }) => git('checkout', '--quiet', '-b', 'other'),
    moved: ['HEAD', 'refs/heads/other'],
    command: /^git symbolic-ref HEAD refs\/heads\/main$/,
  },
  {
    title: 'a deleted tag',
    turn: ({ git }) => git('tag', '--delete', 'v1'),
    moved: ['refs/tags/v1'],
    command: /^git update-ref refs\/tags\/v1 [0-9a-f]{40}$/,
  },
  { title: 'the configuration', turn: ({ git }) => git('config', 'turn.value', '1'), moved: ['config'] },
];

t.test('a repository above the workspace is named before and after an undo, and stays', async (t) => {
  const place = workspaceBelow(t);
  const { git, root, turn, undo, checkpoints } = place;
  const top = join(root, '..');
  for (const [number, { title, turn: work, moved, command }] of aboveCases.entries()) {
    await t.test(title, async (t) => {
      const [id, files, before] = [`turn_${number}`, stateOf(root), repositoryOf(top)];
      await turn(id, () => work(place));
      const turned = repositoryOf(top);
      if (!moved.includes('config')) t.not(turned, before, 'control: the turn moved something');
      const named = [{ path: '../.git', reason: 'repository' }];
      t.match(
        (await checkpoints.list('thread', root)).find(({ turnId }) => turnId === id),
        { notCovered: named },
      );
      t.match(await checkpoints.diff('thread', root, id, false), { notCovered: named });
      const undone = await undo([id]);
      const left = moved.map((name) => ({ name, reason: stays }));
      t.match(undone, { kind: 'restored', git: { moved, isRestored: false, reason: stays, left } });
      t.equal(repositoryOf(top), turned, 'the repository stays');
      t.same(stateOf(root), files, 'the files do not');
      const [first] = undone.kind === 'restored' ? (undone.git?.left ?? []) : [];
      if (!command) return;
      t.match(first?.command, command);
      execFileSync('sh', ['-c', first?.command ?? ''], { cwd: root, stdio: 'ignore' });
      git('reset', '--quiet');
      const refs = (text: string) => text.split('\n').filter((line) => !line.startsWith('refs/heads/other'));
      t.same(refs(repositoryOf(top)).slice(0, 3), refs(before).slice(0, 3), 'the command sets it back');
    });
  }
});

t.test('a worktree above the workspace is named before and after an undo, and stays', async (t) => {
  const { git, root, write, turn, undo, checkpoints } = workspaceBelow(t, true);
  await turn('turn_001', () => {
    write('a.txt', 'two');
    git('commit', '--quiet', '--all', '--message=second');
  });
  const [listed] = await checkpoints.list('thread', root);
  t.match(listed, { notCovered: [{ path: /\.git\/worktrees\/tree$/, reason: 'repository' }] });
  t.match(await undo(['turn_001']), { git: { moved: ['refs/heads/work', 'index'], isRestored: false, reason: stays } });
  t.equal(git('log', '-1', '--format=%s'), 'second');
});

t.test('refs that a turn in a worktree moved and that stay are named before the undo', async (t) => {
  const place = bench(t);
  const main = join(place.root, '..', 'main');
  mkdirSync(main);
  gitIn(main)('init', '--quiet', '--initial-branch=main');
  gitIn(main)('commit', '--quiet', '--allow-empty', '--message=first');
  gitIn(main)('worktree', 'add', '--quiet', '-b', 'work', place.root);
  const { turn, undo, checkpoints } = checkpointsOf(t, place);
  const git = gitIn(place.root);
  await turn('turn_001', () => git('commit', '--quiet', '--allow-empty', '--message=own'));
  await turn('turn_002', () => git('tag', 'v1'));
  const [own, shared] = await checkpoints.list('thread', place.root);
  t.same(own?.notCovered, [], 'control: a turn that is taken back as a whole is not named');
  t.match(shared?.notCovered, [{ path: '.git', reason: 'repository' }]);
  t.match(await undo(['turn_002']), {
    git: { left: [{ name: 'refs/tags/v1', command: 'git update-ref -d refs/tags/v1' }] },
  });
  t.match(await undo(['turn_001']), { git: { moved: ['refs/heads/work'], isRestored: true } });
});

t.test('a repository that the turn made, and one that it removed, are named', async (t) => {
  const place = bench(t);
  const { turn, undo, checkpoints } = checkpointsOf(t, place);
  place.write('a.txt', 'one');
  await turn('turn_001', () => {
    gitIn(place.root)('init', '--quiet');
    gitIn(place.root)('add', '.');
    gitIn(place.root)('commit', '--quiet', '--message=x');
  });
  t.match(await checkpoints.list('thread', place.root), [{ notCovered: [{ path: '.git', reason: 'repository' }] }]);
  t.match(await undo(['turn_001']), {
    git: { moved: ['.git'], isRestored: false, reason: /turn made this repository/ },
  });
  await turn('turn_002', () => rmSync(place.at('.git'), { recursive: true }));
  t.match(await undo(['turn_002']), {
    git: { moved: ['.git'], isRestored: false, reason: /turn removed the repository/ },
  });
  mkdirSync(place.at('empty'));
});
