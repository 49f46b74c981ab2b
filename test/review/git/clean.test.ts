import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { program, programEnvironment } from '../../programs.ts';
import { git, Lab, photograph, put } from './helpers.ts';
import { HttpRemote } from './http-remote.ts';

const hour = 3_600_000;
const nobody = () => false;
const later = (hours: number) => new Date(Date.now() + hours * hour);
const worktrees = (lab: Lab) => readdirSync(lab.root).filter((name) => !name.startsWith('.'));
const storeOf = (lab: Lab) =>
  join(lab.root, '.stores', readdirSync(join(lab.root, '.stores')).find((name) => name.endsWith('.git')) ?? '');

t.test('worktrees are retained for the time of their outcome', async (t) => {
  const lab = new Lab(t);
  const story = lab.begin();
  lab.copy();
  const reviews = await lab.open();
  for (const runId of ['good', 'bad', 'running', 'dead']) await reviews.prepare(lab.target(story, { runId }));
  await reviews.release('good', 'succeeded');
  await reviews.release('bad', 'failed');
  await reviews.release('unknown', 'failed');
  const isActive = (runId: string) => runId === 'running';

  t.strictSame((await reviews.clean(later(23), isActive)).removed, []);
  const first = await reviews.clean(later(25), isActive);
  t.equal(first.removed.length, 1);
  t.strictSame(first.failed, []);
  t.equal(worktrees(lab).length, 6, 'three worktrees with their records are left');
  const second = await reviews.clean(later(169), isActive);
  t.equal(second.removed.length, 2, 'failed, and the one whose run is gone');
  t.equal(worktrees(lab).length, 2);
  await reviews.release('running', 'succeeded');
  t.equal((await reviews.clean(later(169), nobody)).removed.length, 1);
  t.strictSame(worktrees(lab), []);
  const store = storeOf(lab);
  t.equal(git(store, ['for-each-ref', 'refs/oratorio/pull']), '', 'no ref of them is left');
  t.notOk(existsSync(join(store, 'worktrees')), 'nor an entry of git');
});

t.test('a repeated run replaces its worktree', async (t) => {
  const lab = new Lab(t);
  const story = lab.begin();
  lab.copy();
  const reviews = await lab.open();
  const first = await reviews.prepare(lab.target(story));
  const second = await reviews.prepare(lab.target(story));
  t.equal(second.worktreePath, first.worktreePath);
  await reviews.verifyClean(second.worktreePath);
  t.equal(worktrees(lab).length, 2);
});

t.test('a change in the worktree is seen, however it is hidden', async (t) => {
  const lab = new Lab(t);
  const base = lab.upstream.commitFiles({ 'a.txt': 'one\n', '.gitignore': '*.log\n' });
  lab.upstream.setRef('refs/heads/main', base);
  const head = lab.upstream.commitFiles({ 'a.txt': 'two\n', '.gitignore': '*.log\n', 'sub/b.txt': 'b' }, [base]);
  lab.upstream.setHead(7, head);
  lab.copy();
  const reviews = await lab.open();
  const tamper: Readonly<Record<string, (path: string) => void>> = {
    'a changed file': (path) => writeFileSync(join(path, 'a.txt'), 'TWO\n'),
    'a file changed back in time': (path) => {
      const { atime, mtime } = statSync(join(path, 'a.txt'));
      writeFileSync(join(path, 'a.txt'), 'TWO\n');
      utimesSync(join(path, 'a.txt'), atime, mtime);
    },
    'a new file': (path) => put(join(path, 'sub/new'), ''),
    'an ignored file': (path) => put(join(path, 'x.log'), ''),
    'a file that is gone': (path) => unlinkSync(join(path, 'sub/b.txt')),
    'another repository': (path) => {
      unlinkSync(join(path, '.git'));
      git(path, ['init', '--quiet']);
    },
    'another pointer': (path) => writeFileSync(join(path, '.git'), `gitdir: ${lab.workspace}/.git\n`),
    'another head': (path) => git(path, ['update-ref', '--no-deref', 'HEAD', base]),
    'an index that lies': (path) => {
      git(path, ['update-index', '--assume-unchanged', 'a.txt']);
      writeFileSync(join(path, 'a.txt'), 'TWO\n');
    },
  };
  for (const [name, change] of Object.entries(tamper)) {
    const { worktreePath } = await reviews.prepare(lab.target({ base, head }));
    await reviews.verifyClean(worktreePath);
    git(lab.directory, ['--version']);
    await writable(worktreePath);
    change(worktreePath);
    await t.rejects(reviews.verifyClean(worktreePath), { code: 'worktreeDirty' }, name);
  }
  for (const path of ['/etc', lab.root, lab.workspace, `${lab.root}/../x-0123456789ab`, 'x-0123456789ab']) {
    await t.rejects(reviews.verifyClean(path), { code: 'pathOutside' }, path);
  }
  await t.rejects(reviews.verifyClean(join(lab.root, 'x-0123456789ab')), { code: 'worktreeDirty' });
});

t.test('the leftovers of crashes are removed, and nothing else', async (t) => {
  const lab = new Lab(t);
  const story = lab.begin();
  lab.copy();
  const reviews = await lab.open();
  const { worktreePath: half } = await reviews.prepare(lab.target(story, { runId: 'half-removed' }));
  const { worktreePath: kept } = await reviews.prepare(lab.target(story, { runId: 'kept' }));
  const { worktreePath: lost } = await reviews.prepare(lab.target(story, { runId: 'without-record' }));
  renameSync(half, join(lab.root, '.trash-0123456789ab'));
  unlinkSync(`${lost}.json`);
  put(join(lab.root, '.foo-0123456789ab.json.999999.0123456789ab.tmp'), '{');
  put(join(lab.root, '.stores', '.trash-0123456789ab', 'config'), 'half-made');
  const store = storeOf(lab);
  const unfinished = [store.replace(/git$/, 'new'), join(lab.root, '.stores', 'other-0123456789ab.new')];
  for (const path of unfinished) put(join(path, 'config'), 'half-made');
  for (const name of ['config.lock', 'packed-refs.lock', 'objects/pack/tmp_pack_x', 'refs/oratorio/x.lock']) {
    put(join(store, name), '');
  }
  writeFileSync(store.replace(/\.git$/, '.busy'), `git-${'0'.repeat(32)}`);
  put(join(lab.root, 'foreign-0123456789ab', 'file'), 'not ours');
  put(join(lab.root, 'notes.txt'), 'not ours');

  const report = await reviews.clean(later(1), (runId) => runId === 'kept');
  t.strictSame(report.failed, []);
  t.strictSame(
    report.removed.filter((key) => !key.startsWith('other-')),
    [lost.slice(lab.root.length + 1)],
  );
  for (const path of unfinished) t.notOk(existsSync(path), 'a store that was never finished');
  t.notOk(existsSync(join(lab.root, '.trash-0123456789ab')));
  t.notOk(existsSync(join(lab.root, '.stores', '.trash-0123456789ab')));
  t.strictSame(
    readdirSync(store, { recursive: true, encoding: 'utf8' }).filter((name) => /\.lock$|tmp_pack/.test(name)),
    [],
  );
  t.ok(existsSync(join(lab.root, 'foreign-0123456789ab', 'file')));
  t.ok(existsSync(join(lab.root, 'notes.txt')));
  await reviews.verifyClean(kept);
  t.equal((await reviews.prepare(lab.target(story, { runId: 'next' }))).headSha, story.head);
});

t.test('records that lie lead nowhere outside', async (t) => {
  const lab = new Lab(t);
  const story = lab.begin();
  lab.copy();
  const reviews = await lab.open();
  const outside = join(lab.directory, 'outside');
  put(join(outside, 'file'), 'precious');
  const { worktreePath } = await reviews.prepare(lab.target(story));
  const record = JSON.parse(readFileSync(`${worktreePath}.json`, 'utf8'));
  const lies = [
    { ...record, store: '../../outside' },
    { ...record, store: '/etc' },
    { ...record, store: 'x-0123456789ab', since: 0 },
    { ...record, store: `../${'x'.repeat(5)}-0123456789ab` },
    {},
  ];
  for (const [index, lie] of lies.entries()) {
    put(join(lab.root, `lie-00000000000${index}.json`), JSON.stringify(lie));
  }
  symlinkSync(outside, join(lab.root, 'link-0123456789ab'));
  put(join(lab.root, 'link-0123456789ab.json'), JSON.stringify({ ...record, runId: 'link', since: 0 }));
  mkdirSync(join(lab.root, 'inner-0123456789ab'));
  symlinkSync(outside, join(lab.root, 'inner-0123456789ab', 'link'));
  put(join(lab.root, 'inner-0123456789ab.json'), JSON.stringify({ ...record, runId: 'inner', since: 0 }));
  symlinkSync(outside, join(lab.root, '.trash-aaaaaaaaaaaa'));
  const before = photograph(outside);
  await reviews.clean(later(10_000), (runId) => runId === record.runId);
  t.strictSame(photograph(outside), before);
  t.notOk(existsSync(join(lab.root, 'link-0123456789ab')), 'the link is gone, its target is not');
  await reviews.verifyClean(worktreePath);
});

t.test('an unused store is removed, and a root with foreign entries in our places is refused', async (t) => {
  const lab = new Lab(t);
  const story = lab.begin();
  lab.copy();
  const reviews = await lab.open();
  await reviews.prepare(lab.target(story));
  await reviews.release('run-1', 'succeeded');
  await reviews.clean(later(25), nobody);
  t.ok(existsSync(storeOf(lab)));
  await reviews.clean(later(24 * 31), nobody);
  t.strictSame(
    readdirSync(join(lab.root, '.stores')).filter((name) => name.endsWith('.git')),
    [],
  );
  const planted = join(lab.directory, 'planted');
  put(join(planted, '.empty', 'post-checkout'), '#!/bin/sh\n', 0o755);
  await t.rejects(lab.open({ worktreeRoot: planted }), { code: 'pathOutside' });
  const linked = join(lab.directory, 'linked');
  mkdirSync(linked);
  symlinkSync(lab.workspace, join(linked, '.stores'));
  await t.rejects(lab.open({ worktreeRoot: linked }), { code: 'pathOutside' });
});

t.test('many small packs become few', async (t) => {
  const lab = new Lab(t);
  const { base } = lab.begin();
  lab.copy();
  const reviews = await lab.open();
  await reviews.prepare(lab.target({ base, head: lab.begin().head }));
  const store = storeOf(lab);
  // Each checkpoint ends a pack.
  const blobs = Array.from({ length: 45 }, (_, index) => `blob\ndata <<end\ncontent ${index}\nend\n\ncheckpoint\n\n`);
  git(store, ['-c', 'fastimport.unpackLimit=0', 'fast-import', '--quiet'], blobs.join(''));
  const packs = () => readdirSync(join(store, 'objects/pack')).filter((name) => name.endsWith('.pack')).length;
  t.ok(packs() > 40);
  await reviews.clean(later(1), () => true);
  t.ok(packs() < 5, `${packs()} packs`);
  await reviews.verifyClean(join(lab.root, worktrees(lab)[0] ?? ''));
});

t.test('a process that is killed in the middle of a fetch leaves nothing in the way', async (t) => {
  const lab = new Lab(t);
  const story = lab.begin();
  lab.copy();
  const remote = await HttpRemote.start(t, join(lab.directory, 'forge'));
  for (let round = 0; round < 3; round += 1) {
    const asked = Promise.withResolvers<void>();
    // The fetch hangs, and would for ever.
    remote.behaviour = () => asked.resolve();
    const child = prepareElsewhere(lab, story, remote.endpoint);
    await asked.promise;
    child.kill('SIGKILL');
    await once(child, 'exit');
    remote.behaviour = 'git';
    const reviews = await lab.open({ gitEndpoint: remote.endpoint });
    const found = await reviews.prepare(lab.target(story, { runId: `after-${round}` }));
    t.equal(found.headSha, story.head);
    await reviews.verifyClean(found.worktreePath);
    t.notMatch(gitProcessesOf(lab), /./, 'the orphan has been ended');
    await reviews.clean(later(24 * 31), nobody);
    t.strictSame(worktrees(lab), []);
  }
});

t.test('two processes at once do not disturb each other', async (t) => {
  const lab = new Lab(t);
  const story = lab.begin();
  lab.copy();
  const children = Array.from({ length: 3 }, (_, index) =>
    prepareElsewhere(lab, story, lab.endpoint, `other-${index}`),
  );
  const reviews = await lab.open();
  const here = [1, 2, 3].map((index) => reviews.prepare(lab.target(story, { runId: `here-${index}` })));
  for (const child of children) t.equal(child.exitCode ?? (await once(child, 'exit'))[0], 0);
  for (const found of await Promise.all(here)) await reviews.verifyClean(found.worktreePath);
  t.equal(worktrees(lab).length, 12);
});

const script = program('test/review/git/prepare-elsewhere.ts');

function prepareElsewhere(
  lab: Lab,
  { base, head }: { base: string; head: string },
  endpoint: string,
  runId = 'elsewhere',
): ChildProcess {
  const input = JSON.stringify({ root: lab.root, workspace: lab.workspace, endpoint, base, head, runId });
  return spawn(process.execPath, ['--disable-warning=ExperimentalWarning', script, input], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: programEnvironment,
  });
}

/** Command lines of git processes that work on one of the lab's stores. */
function gitProcessesOf(lab: Lab): string {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .map((pid) => {
      try {
        const environment = readFileSync(`/proc/${pid}/environ`, 'latin1');
        return environment.includes(`GIT_DIR=${lab.root}`) ? readFileSync(`/proc/${pid}/cmdline`, 'latin1') : '';
      } catch {
        return '';
      }
    })
    .join('');
}

/** An attacker who runs as us can take the right to write. */
async function writable(path: string): Promise<void> {
  const child = spawn('chmod', ['-R', 'u+w', path], { stdio: 'ignore' });
  await once(child, 'exit');
}
