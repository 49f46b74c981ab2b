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
    git: { moved: ['HEAD', 'refs/heads/feature/x', 'refs/heads/main'], isRestored: true },
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
    git: { moved: ['refs/heads/main'], isRestored: false, reason: 'HEAD or a branch was moved since' },
  });
  t.same([git('rev-parse', 'HEAD'), read('a.txt')], [mine, 'one']);
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
