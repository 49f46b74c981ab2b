import { execFileSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import { bench, checkpointsOf } from './tree-of-files.ts';

function repository(t: Test) {
  const place = bench(t);
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@localhost', ...args], { cwd: place.root })
      .toString()
      .trim();
  git('init', '--quiet', '--initial-branch=main');
  place.write('a.txt', 'one');
  git('add', '.');
  git('commit', '--quiet', '--message=first');
  return { ...place, ...checkpointsOf(t, place), git };
}

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

t.test(
  'regression: what the user had staged is staged again after a turn that committed it is taken back',
  async (t) => {
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
  },
);

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

t.test('what was staged or committed between two turns stays, and the result says so', async (t) => {
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
