import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { PreparedReview } from '../../../src/review/git/index.ts';
import { git, Lab, photograph, put, Upstream } from './helpers.ts';

const changes = (change: PreparedReview) => change.files.map(({ path, status }) => `${status} ${path}`);

t.test('a checkout that tests write is a clone', async (t) => {
  const lab = new Lab(t);
  const { base } = lab.begin();
  lab.upstream.setRef('refs/heads/side/branch', lab.upstream.commitFiles({ 'dir/b.txt': 'b\n' }, [base]));
  const listing = () =>
    [
      ['for-each-ref'],
      ['rev-list', '--all', '--objects'],
      ['config', '--local', '--list'],
      ['symbolic-ref', 'HEAD'],
    ].map((args) => git(lab.workspace, args).split('\n').sort());
  lab.copy();
  const copied = listing();
  git(lab.workspace, ['fsck', '--strict']);
  rmSync(lab.workspace, { recursive: true });
  lab.clone('--no-checkout');
  t.strictSame(copied, listing());
});

t.test('every kind of checkout can lend its objects', async (t) => {
  const kinds: Readonly<Record<string, (lab: Lab) => string>> = {
    bare: (lab) => {
      lab.clone('--bare');
      return lab.workspace;
    },
    'without a working tree checked out': (lab) => {
      lab.clone('--no-checkout');
      return lab.workspace;
    },
    blobless: (lab) => {
      lab.clone('--filter=blob:none', '--no-checkout');
      return lab.workspace;
    },
    treeless: (lab) => {
      lab.clone('--filter=tree:0', '--no-checkout');
      return lab.workspace;
    },
    shallow: (lab) => {
      lab.clone('--depth=1');
      return lab.workspace;
    },
    'a linked worktree': (lab) => {
      lab.clone();
      git(lab.workspace, ['worktree', 'add', '--quiet', '--detach', join(lab.directory, 'linked')]);
      return join(lab.directory, 'linked');
    },
    'of an older commit': (lab) => {
      const other = new Upstream(join(lab.directory, 'other.git'));
      other.setRef('refs/heads/main', other.commitFiles({ other: 'other' }));
      git(lab.directory, ['clone', '--quiet', other.path, lab.workspace]);
      return lab.workspace;
    },
  };
  for (const [kind, make] of Object.entries(kinds)) {
    await t.test(kind, async (t) => {
      const lab = new Lab(t);
      const grandparent = lab.upstream.commitFiles({ 'a.txt': 'zero\n', 'old.txt': 'old\n' });
      const base = lab.upstream.commitFiles({ 'a.txt': 'one\n', 'deep/er/x.txt': 'x\n' }, [grandparent]);
      const fork = lab.upstream.commitFiles({ 'a.txt': 'zero\n', 'old.txt': 'new\n' }, [grandparent]);
      lab.upstream.setRef('refs/heads/main', base);
      lab.upstream.setHead(7, fork);
      const workspacePath = make(lab);
      const before = photograph(lab.workspace);
      const reviews = await lab.open();
      const found = await reviews.prepare(lab.target({ base, head: fork }, { workspacePath }));
      t.equal(found.mergeBaseSha, grandparent);
      t.strictSame(changes(found), ['modified old.txt']);
      t.equal(readFileSync(join(found.worktreePath, 'old.txt'), 'utf8'), 'new\n');
      t.equal(await found.baseFiles('deep/er/x.txt'), 'x\n');
      await reviews.verifyClean(found.worktreePath);
      t.strictSame(photograph(lab.workspace), before, 'nothing in the checkout has changed');
    });
  }
});

t.test('a workspace that is not a usable repository is refused', async (t) => {
  const lab = new Lab(t);
  const story = lab.begin();
  const reviews = await lab.open();
  const refused = { code: 'baseWorkspaceNotGitRepository', isRetryable: false };
  await t.rejects(reviews.prepare(lab.target(story)), refused, 'missing');
  put(join(lab.workspace, 'readme'), 'no repository');
  await t.rejects(reviews.prepare(lab.target(story)), refused, 'an ordinary directory');
  put(join(lab.workspace, '.git'), 'gitdir: /nonexistent\n');
  await t.rejects(reviews.prepare(lab.target(story)), refused, 'a pointer to nowhere');
  put(join(lab.workspace, '.git'), 'nonsense');
  await t.rejects(reviews.prepare(lab.target(story)), refused, 'nonsense');
  rmSync(lab.workspace, { recursive: true });
  git(lab.directory, ['init', '--quiet', '--object-format=sha256', lab.workspace]);
  await t.rejects(reviews.prepare(lab.target(story)), { code: 'objectFormatUnsupported', isRetryable: false });
});

t.test('objects that the checkout threw away are fetched again', async (t) => {
  const lab = new Lab(t);
  const { upstream } = lab;
  const base = upstream.commitFiles({ 'a.txt': 'one\n' });
  const middle = upstream.commitFiles({ 'a.txt': 'two\n', 'm.txt': 'm\n' }, [base]);
  const head = upstream.commitFiles({ 'a.txt': 'three\n', 'm.txt': 'm\n' }, [middle]);
  upstream.setRef('refs/heads/main', base);
  upstream.setRef('refs/heads/feature', middle);
  upstream.setHead(7, head);
  lab.clone();
  const reviews = await lab.open();
  await reviews.prepare(lab.target({ base, head }));
  git(lab.workspace, ['update-ref', '-d', 'refs/remotes/origin/feature']);
  git(lab.workspace, ['-c', 'gc.pruneExpire=now', 'gc', '--quiet', '--prune=now']);
  t.throws(() => git(lab.workspace, ['cat-file', '-e', middle]), 'the checkout has it no more');

  const next = upstream.commitFiles({ 'a.txt': 'four\n', 'm.txt': 'm\n' }, [head]);
  upstream.setHead(7, next);
  const found = await reviews.prepare(lab.target({ base, head: next }, { runId: 'run-2', sinceSha: head }));
  t.equal(found.scope, 'incremental');
  t.strictSame(changes(found), ['modified a.txt', 'added m.txt']);
  await reviews.verifyClean(found.worktreePath);
});
