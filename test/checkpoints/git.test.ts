import { execFileSync, spawn } from 'node:child_process';
import { chownSync, existsSync, linkSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { canBecomeOther, otherUid } from '../other-user.ts';
import { gitIn, repository } from './repositories.ts';
import { bench, checkpointsOf } from './tree-of-files.ts';

t.test('commits and branches of a turn are taken back with its files', async (t) => {
  const { git, turn, undo, write, read } = repository(t);
  const first = git('rev-parse', 'HEAD');
  await turn('turn_001', () => {
    write('a.txt', 'two');
    git('commit', '--quiet', '--all', '--message=second');
    git('checkout', '--quiet', '-b', 'feature/x');
    write('b.txt', 'new');
    git('add', '.');
    git('commit', '--quiet', '--message=third');
  });
  const third = git('rev-parse', 'HEAD');
  const undone = await undo(['turn_001']);
  t.match(undone, {
    kind: 'restored',
    git: { moved: ['HEAD', 'refs/heads/feature/x', 'refs/heads/main', 'index'], isRestored: true },
  });
  t.same([git('rev-parse', 'HEAD'), git('symbolic-ref', 'HEAD')], [first, 'refs/heads/main']);
  t.same([git('branch', '--list', 'feature/x'), git('status', '--porcelain'), read('a.txt')], ['', '', 'one']);

  await undo([undone.kind === 'restored' ? undone.restoreId : '']);
  t.same([git('rev-parse', 'HEAD'), git('symbolic-ref', 'HEAD')], [third, 'refs/heads/feature/x'], 'and forth');
  t.same([git('status', '--porcelain'), read('b.txt')], ['', 'new']);
});

t.test('a repository that the user has moved since stays, and the result says so', async (t) => {
  const { git, turn, undo, write, read } = repository(t);
  await turn('turn_001', () => {
    write('a.txt', 'two');
    git('commit', '--quiet', '--all', '--message=second');
  });
  git('commit', '--quiet', '--allow-empty', '--message=mine');
  const mine = git('rev-parse', 'HEAD');
  t.match(await undo(['turn_001']), {
    kind: 'restored',
    git: { moved: ['refs/heads/main', 'index'], isRestored: false, reason: 'HEAD or a branch was moved since' },
  });
  t.same([git('rev-parse', 'HEAD'), read('a.txt')], [mine, 'one']);
});

const staged = (git: (...args: string[]) => string): string => git('diff', '--cached', '--no-color');

t.test('regression: undoing a turn that committed the staged changes of the user stages them again', async (t) => {
  const { git, turn, undo, write } = repository(t);
  write('a.txt', 'mine');
  write('b.txt', 'staged');
  git('add', '.');
  write('a.txt', 'mine, and not staged');
  const before = [staged(git), git('status', '--porcelain')];
  await turn('turn_001', () => {
    write('a.txt', 'by the turn');
    write('c.txt', 'new');
    git('add', '.');
    git('commit', '--quiet', '--message=second');
  });
  const undone = await undo(['turn_001']);
  t.match(undone, { kind: 'restored', git: { moved: ['refs/heads/main', 'index'], isRestored: true } });
  t.same([staged(git), git('status', '--porcelain')], before);
  await undo([undone.kind === 'restored' ? undone.restoreId : '']);
  t.same([git('log', '-1', '--format=%s'), git('status', '--porcelain')], ['second', ''], 'and forth');
});

t.test('a turn that only staged is taken back in the index, too', async (t) => {
  const { git, turn, undo, write, at } = repository(t);
  const before = git('ls-files', '--stage');
  await turn('turn_001', () => {
    write('b.txt', 'new');
    git('add', 'b.txt');
    git('rm', '--quiet', '--cached', 'a.txt');
  });
  // A program that only looks writes the index, too: times of files in it do not count.
  git('update-index', '--refresh', '--really-refresh');
  t.match(await undo(['turn_001']), { kind: 'restored', git: { moved: ['index'], isRestored: true } });
  t.same([git('ls-files', '--stage'), git('status', '--porcelain')], [before, '']);
  t.same([existsSync(at('.git/index.lock')), existsSync(at('.git/index.oratorio'))], [false, false]);
});

t.test('an index that the user changed since stays with the branches, and the result says so', async (t) => {
  const { git, turn, undo, write, read } = repository(t);
  await turn('turn_001', () => {
    write('a.txt', 'two');
    git('commit', '--quiet', '--all', '--message=second');
  });
  const second = git('rev-parse', 'HEAD');
  write('mine.txt', 'mine');
  git('add', 'mine.txt');
  t.match(await undo(['turn_001']), {
    kind: 'restored',
    git: { moved: ['refs/heads/main', 'index'], isRestored: false, reason: 'the index was changed since' },
  });
  t.same(
    [git('rev-parse', 'HEAD'), git('diff', '--cached', '--name-only'), read('a.txt')],
    [second, 'mine.txt', 'one'],
  );
});

t.test('an index that another program holds stays with the branches, and the result says so', async (t) => {
  const { git, turn, undo, write, at } = repository(t);
  await turn('turn_001', () => {
    write('a.txt', 'two');
    git('commit', '--quiet', '--all', '--message=second');
  });
  const second = git('rev-parse', 'HEAD');
  write('.git/index.lock', '');
  t.match(await undo(['turn_001']), { git: { isRestored: false, reason: /under way \(index\.lock\)/ } });
  t.same([git('rev-parse', 'HEAD'), existsSync(at('.git/index.lock'))], [second, true]);
});

t.test('changes staged or committed between two turns stay, and the result names the reason', async (t) => {
  const { git, turn, undo, write } = repository(t);
  const stage = (name: string) => {
    write(name, 'new');
    git('add', name);
  };
  await turn('turn_001', () => stage('b.txt'));
  stage('mine.txt');
  await turn('turn_002', () => stage('c.txt'));
  const reason = 'it was changed between the turns, too';
  t.match(await undo(['turn_001', 'turn_002']), { git: { moved: ['index'], isRestored: false, reason } });
  t.equal(git('diff', '--cached', '--name-only'), 'b.txt\nc.txt\nmine.txt');
});

for (const [form, init, convert] of [
  ['SHA-256', ['--object-format=sha256'], []],
  ['split', [], ['update-index', '--split-index']],
  ['version 4', [], ['update-index', '--index-version=4']],
  ['with a cache of untracked files', [], ['update-index', '--force-untracked-cache']],
] as const) {
  t.test(`an index is set back, and one that the user changed since stays: ${form}`, async (t) => {
    const place = bench(t);
    const { turn, undo } = checkpointsOf(t, place);
    const git = gitIn(place.root);
    git('init', '--quiet', '--initial-branch=main', ...init);
    for (const name of ['link', 'sdir/a']) place.write(name, 'one');
    git('add', '.');
    git('commit', '--quiet', '--message=first');
    if (convert.length > 0) git(...convert);
    const stage = (name: string) => {
      place.write(name, 'new');
      git('add', name);
    };
    const before = git('ls-files', '--stage');
    await turn('turn_001', () => stage('b.txt'));
    // A program that only reads writes the index, too: times of files in it do not count.
    git('update-index', '--refresh', '--really-refresh');
    t.match(await undo(['turn_001']), { kind: 'restored', git: { moved: ['index'], isRestored: true } });
    t.same([git('ls-files', '--stage'), git('status', '--porcelain')], [before, '']);
    await turn('turn_002', () => stage('c.txt'));
    stage('mine.txt');
    t.match(await undo(['turn_002']), { git: { moved: ['index'], isRestored: false } });
    t.equal(git('diff', '--cached', '--name-only'), 'c.txt\nmine.txt');
  });
}

t.test(
  'an undo leaves hooks, reflogs, hard links, times, our own state and everything outside of the workspace',
  async (t) => {
    const { git, turn, undo, at, read } = repository(t);
    linkSync(at('a.txt'), at('linked.txt'));
    const before = statSync(at('a.txt'));
    await turn('turn_001', () => {
      writeFileSync(at('a.txt'), 'two');
      git('commit', '--quiet', '--all', '--message=second');
      mkdirSync(at('.oratorio'));
      for (const name of ['.git/hooks/made', '.oratorio/made', '../outside']) writeFileSync(at(name), 'turn');
    });
    const after = statSync(at('a.txt'));
    t.match(await undo(['turn_001']), { kind: 'restored', git: { isRestored: true } });
    t.same([read('a.txt'), read('linked.txt')], ['one', 'one'], 'control: the contents are restored');
    t.not(statSync(at('a.txt')).ino, statSync(at('linked.txt')).ino, 'as two files');
    t.ok(statSync(at('a.txt')).mtimeMs >= after.mtimeMs && after.mtimeMs > before.mtimeMs - 1, 'with a new time');
    for (const name of ['.git/hooks/made', '.oratorio/made', '../outside']) t.equal(read(name), 'turn', name);
    t.match(git('reflog', 'main'), /second/);
  },
);

t.test('an undo leaves pushed commits, programs that run, and owners of files', async (t) => {
  const { git, turn, undo, at, write, read } = repository(t);
  git('init', '--quiet', '--bare', '../remote.git');
  git('remote', 'add', 'origin', '../remote.git');
  write('owned.txt', 'one');
  const program = spawn('sleep', ['1000'], { stdio: 'ignore' });
  t.teardown(() => program.kill('SIGKILL'));
  let pushed = '';
  await turn('turn_001', () => {
    write('a.txt', 'two');
    git('commit', '--quiet', '--all', '--message=second');
    git('push', '--quiet', 'origin', 'main');
    pushed = git('rev-parse', 'HEAD');
    if (canBecomeOther) chownSync(at('owned.txt'), otherUid, otherUid);
  });
  t.match(await undo(['turn_001']), { kind: 'restored', git: { isRestored: true } });
  t.equal(read('a.txt'), 'one', 'control: the file is restored');
  t.not(git('rev-parse', 'HEAD'), pushed, 'control: the branch is restored');
  t.equal(git('--git-dir', '../remote.git', 'rev-parse', 'main'), pushed);
  t.same([program.exitCode, program.signalCode], [null, null]);
  if (canBecomeOther) t.equal(statSync(at('owned.txt')).uid, otherUid);
});

t.test('a saved index that is damaged is not put back', async (t) => {
  const { git, turn, undo, at, write } = repository(t);
  const index = readFileSync(at('.git/index'));
  const last = index.length - 1;
  writeFileSync(at('.git/index'), Buffer.from(index).fill(index.readUInt8(last) ^ 1, last));
  await turn('turn_001', () => {
    writeFileSync(at('.git/index'), index);
    write('b.txt', 'new');
    git('add', 'b.txt');
  });
  t.match(await undo(['turn_001']), { git: { isRestored: false, reason: 'the saved index cannot be read' } });
  t.equal(git('diff', '--cached', '--name-only'), 'b.txt');
});

t.test('a repository without an index gets none back', async (t) => {
  const place = bench(t);
  const { turn, undo } = checkpointsOf(t, place);
  execFileSync('git', ['init', '--quiet'], { cwd: place.root });
  await turn('turn_001', () => {
    place.write('a.txt', 'a');
    execFileSync('git', ['add', '.'], { cwd: place.root });
  });
  t.match(await undo(['turn_001']), { git: { moved: ['index'], isRestored: true } });
  t.notOk(existsSync(place.at('.git/index')) || existsSync(place.at('.git/index.lock')));
});

t.test('programs that the repository names do not run', async (t) => {
  const { git, turn, undo, write, at } = repository(t);
  const ran = at('../ran');
  await turn('turn_001', () => {
    write('a.txt', 'two');
    write('.gitattributes', '* filter=evil\n');
    git('commit', '--quiet', '--all', '--message=second');
    for (const hook of ['reference-transaction', 'post-index-change', 'post-checkout']) {
      writeFileSync(at(`.git/hooks/${hook}`), `#!/bin/sh\ntouch ${ran}\n`, { mode: 0o755 });
    }
    for (const name of ['filter.evil.clean', 'filter.evil.smudge', 'core.fsmonitor'])
      git('config', name, `touch ${ran}`);
  });
  t.match(await undo(['turn_001']), { kind: 'restored', git: { isRestored: true } });
  t.notOk(existsSync(ran));
});

t.test('turns that moved nothing say nothing of git', async (t) => {
  const { turn, undo, write } = repository(t);
  await turn('turn_001', () => write('a.txt', 'two'));
  t.notOk('git' in (await undo(['turn_001'])));
});

/** A worktree on no branch, as a fork has one, with its checkpoints; `main` runs git in the repository. */
function worktree(t: Test) {
  const place = bench(t);
  const repositoryPath = join(place.root, '..', 'repository');
  mkdirSync(repositoryPath);
  const [main, git] = [gitIn(repositoryPath), gitIn(place.root)];
  main('init', '--quiet', '--initial-branch=main');
  writeFileSync(join(repositoryPath, 'a.txt'), 'one');
  main('add', '.');
  main('commit', '--quiet', '--message=first');
  main('worktree', 'add', '--quiet', '--detach', place.root);
  const commit = (text: string) => {
    place.write('a.txt', text);
    git('commit', '--quiet', '--all', `--message=${text}`);
  };
  return { ...place, ...checkpointsOf(t, place), git, main, commit, repositoryPath };
}

t.test('commits of a turn in a worktree are taken back there, and the branches of the repository stay', async (t) => {
  const { git, main, turn, undo, write, read, commit } = worktree(t);
  write('b.txt', 'staged');
  git('add', '.');
  const before = [git('rev-parse', 'HEAD'), staged(git), git('status', '--porcelain')];
  await turn('turn_001', () => {
    commit('two');
    main('commit', '--quiet', '--allow-empty', '--message=of the user');
    main('branch', 'other');
  });
  const [second, users] = [git('rev-parse', 'HEAD'), main('rev-parse', 'main')];
  const undone = await undo(['turn_001']);
  t.match(undone, { kind: 'restored', git: { moved: ['HEAD', 'index'], isRestored: true } });
  t.same([git('rev-parse', 'HEAD'), staged(git), git('status', '--porcelain')], before);
  t.same([main('rev-parse', 'main', 'other'), main('status', '--porcelain')], [`${users}\n${users}`, '']);
  await undo([undone.kind === 'restored' ? undone.restoreId : '']);
  t.same([git('rev-parse', 'HEAD'), git('status', '--porcelain'), read('a.txt')], [second, '', 'two'], 'and forth');
});

t.test('of a worktree the branch on which it stood is set back, and one that the turn made is named', async (t) => {
  const { git, turn, undo, commit } = worktree(t);
  git('switch', '--quiet', '--create', 'work');
  const first = git('rev-parse', 'HEAD');
  await turn('turn_001', () => {
    commit('two');
    git('switch', '--quiet', '--create', 'made');
    commit('three');
  });
  const made = git('rev-parse', 'made');
  const undone = await undo(['turn_001']);
  t.match(undone, {
    git: {
      ...{ moved: ['HEAD', 'refs/heads/work', 'index'], isRestored: true },
      reason: 'refs/heads/made stays: other worktrees share it',
    },
  });
  t.same(git('rev-parse', 'HEAD', 'work', 'made').split('\n'), [first, first, made]);
  t.equal(git('symbolic-ref', 'HEAD'), 'refs/heads/work');
  await undo([undone.kind === 'restored' ? undone.restoreId : '']);
  t.same([git('symbolic-ref', 'HEAD'), git('status', '--porcelain')], ['refs/heads/made', ''], 'and forth');
});

t.test('a worktree that the user has moved since stays, and the result says so', async (t) => {
  const { git, turn, undo, commit } = worktree(t);
  await turn('turn_001', () => {
    git('switch', '--quiet', '--create', 'made');
    commit('two');
  });
  git('commit', '--quiet', '--allow-empty', '--message=mine');
  const mine = git('rev-parse', 'HEAD');
  const reason = 'HEAD or a branch was moved since';
  t.match(await undo(['turn_001']), { git: { moved: ['HEAD', 'index'], isRestored: false, reason } });
  t.equal(git('rev-parse', 'made'), mine);
});

t.test('a branch on which another worktree stands by now stays, and the result says so', async (t) => {
  const { git, main, turn, undo, commit } = worktree(t);
  git('switch', '--quiet', '--create', 'work');
  await turn('turn_001', () => {
    commit('two');
    git('switch', '--quiet', '--detach');
  });
  main('switch', '--quiet', 'work');
  const second = main('rev-parse', 'work');
  const reason = 'refs/heads/work is checked out in another worktree';
  t.match(await undo(['turn_001']), { git: { isRestored: false, reason } });
  t.same([main('rev-parse', 'HEAD'), main('status', '--porcelain')], [second, '']);
});

t.test('regression: the turn of a workspace does not move a branch under a worktree', async (t) => {
  const { git, turn, undo, write, root } = repository(t);
  const fork = gitIn(join(root, '..', 'fork'));
  git('worktree', 'add', '--quiet', '-b', 'work', '../fork');
  await turn('turn_001', () => {
    write('a.txt', 'two');
    git('commit', '--quiet', '--all', '--message=second');
    fork('commit', '--quiet', '--allow-empty', '--message=of the fork');
  });
  const reason = 'refs/heads/work is checked out in another worktree';
  t.match(await undo(['turn_001']), { git: { isRestored: false, reason } });
  t.equal(fork('log', '-1', '--format=%s'), 'of the fork');
});

t.test('a repository that does not name the worktree is not written to after any change of `.git`', async (t) => {
  const { main, turn, undo, write, at, commit, repositoryPath } = worktree(t);
  const first = main('rev-parse', 'main');
  await turn('turn_001', () => {
    commit('two');
    // A worktree of another repository, made in the workspace.
    write('fake/worktrees/x/gitdir', at('.git'));
    write('fake/worktrees/x/commondir', `${repositoryPath}/.git`);
    write('fake/worktrees/x/HEAD', 'ref: refs/heads/main\n');
    write('.git', `gitdir: ${at('fake/worktrees/x')}\n`);
  });
  const reason = 'the workspace belongs to another repository now';
  t.match(await undo(['turn_001']), { kind: 'restored', git: { isRestored: false, reason } });
  t.equal(main('rev-parse', 'main'), first);
});

t.test('a repository that lies elsewhere stays, and the result says so', async (t) => {
  const place = bench(t);
  const { turn, undo } = checkpointsOf(t, place);
  const git = gitIn(place.root);
  git('init', '--quiet', '--initial-branch=main', '--separate-git-dir=../elsewhere');
  git('commit', '--quiet', '--allow-empty', '--message=first');
  await turn('turn_001', () => git('commit', '--quiet', '--allow-empty', '--message=second'));
  const reason = 'its directory is not that of this workspace';
  t.match(await undo(['turn_001']), { git: { moved: ['refs/heads/main'], isRestored: false, reason } });
  t.equal(git('log', '-1', '--format=%s'), 'second');
});
