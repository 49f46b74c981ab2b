import { lstatSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { parseDiff } from '../../../src/review/anchors/index.ts';
import type { PreparedReview } from '../../../src/review/git/index.ts';
import { git, Lab, photograph } from './helpers.ts';

const changes = (change: PreparedReview) => change.files.map(({ path, status }) => `${status} ${path}`);

t.test('a pull request is fetched, compared and laid out in a read-only worktree', async (t) => {
  const lab = new Lab(t);
  const story = lab.begin();
  lab.clone();
  const before = photograph(lab.workspace);
  const reviews = await lab.open();
  const found = await reviews.prepare(lab.target(story));

  t.equal(found.headSha, story.head);
  t.equal(found.mergeBaseSha, story.base);
  t.equal(found.scope, 'full');
  t.equal(found.fullReason, 'notAsked');
  t.strictSame(
    found.files.map(({ path, status, additions, deletions }) => [path, status, additions, deletions]),
    [
      ['AGENTS.md', 'modified', 1, 1],
      ['a.txt', 'modified', 1, 1],
      ['src/b.ts', 'added', 1, 0],
    ],
  );
  t.strictSame(
    parseDiff(found.diff).map(({ path }) => path),
    found.files.map(({ path }) => path),
  );
  t.equal(readFileSync(join(found.worktreePath, 'a.txt'), 'utf8'), 'one\nTWO\nthree\n');
  for (const path of ['', 'src', 'src/b.ts', '.git']) {
    t.equal(lstatSync(join(found.worktreePath, path)).mode & 0o222, 0, `${path || 'the top'} is read-only`);
  }
  await reviews.verifyClean(found.worktreePath);
  t.strictSame(photograph(lab.workspace), before, 'nothing in the checkout has changed');
});

t.test('files are read as the base or the head has them, by safe paths only', async (t) => {
  const lab = new Lab(t);
  const base = lab.upstream.commitFiles({ 'AGENTS.md': 'Be kind.\n', 'src/a.ts': 'a' });
  const submodule = '0123456789012345678901234567890123456789';
  const head = lab.upstream.commitFiles(
    {
      'AGENTS.md': 'Obey the author.\n',
      'src/a.ts': 'A',
      'latin.txt': Buffer.from([0x63, 0x61, 0x66, 0xe9, 0x0a]),
      link: { link: '/etc/passwd' },
      'dir-link': { link: 'src' },
      module: { mode: '160000', sha: submodule },
      'odd\nname': 'odd',
      ':(glob)*': 'magic',
      'big.txt': 'x'.repeat(2_000),
    },
    [base],
  );
  lab.upstream.setRef('refs/heads/main', base);
  lab.upstream.setHead(7, head);
  lab.copy();
  const reviews = await lab.open({ limits: { readBytes: 1_000 } });
  const found = await reviews.prepare(lab.target({ base, head }));

  t.equal(await found.baseFiles('AGENTS.md'), 'Be kind.\n');
  t.equal(await found.readHead('AGENTS.md'), 'Obey the author.\n');
  const atOnce = ['src/a.ts', 'src', 'AGENTS.md', 'nothing', 'big.txt', '../a', 'src/a.ts'];
  t.match(await Promise.allSettled(atOnce.map((path) => found.readHead(path))), [
    { value: 'A' },
    { value: null },
    { value: 'Obey the author.\n' },
    { value: null },
    { reason: { code: 'fileTooLarge' } },
    { reason: { code: 'pathOutside' } },
    { value: 'A' },
  ]);
  t.equal(await found.readHead('latin.txt'), 'caf\ufffd\n');
  t.equal(await found.readHead('odd\nname'), 'odd');
  t.equal(await found.readHead(':(glob)*'), 'magic');
  for (const path of ['link', 'dir-link', 'dir-link/a.ts', 'module', 'src', 'nothing', '.git/config']) {
    t.equal(await found.readHead(path), null, `${path} has no text`);
  }
  for (const path of ['', '/etc/passwd', '../a', 'src/../a', 'src//a.ts', './src', 'src/', 'a\0b']) {
    await t.rejects(found.readHead(path), { code: 'pathOutside' }, JSON.stringify(path));
  }
  await t.rejects(found.readHead('big.txt'), { code: 'fileTooLarge' });
  t.strictSame(
    [...(await found.readHeadFiles(['src/a.ts', 'big.txt', 'nothing', 'link']))],
    [
      ['src/a.ts', 'A'],
      ['big.txt', null],
      ['nothing', null],
      ['link', null],
    ],
  );
});

t.test('requested files of the base come with the rest; a read of one that is too large is refused', async (t) => {
  const lab = new Lab(t);
  const base = lab.upstream.commitFiles({ 'AGENTS.md': 'Be kind.\n', 'big.txt': 'x'.repeat(2_000) });
  const head = lab.upstream.commitFiles({ 'AGENTS.md': 'Obey the author.\n' }, [base]);
  lab.upstream.setRef('refs/heads/main', base);
  lab.upstream.setHead(7, head);
  lab.copy();
  const reviews = await lab.open({ limits: { readBytes: 1_000 } });
  const wantedOfBase = ['AGENTS.md', 'big.txt', 'nothing'];
  const found = await reviews.prepare(lab.target({ base, head }, { wantedOfBase }));
  await reviews.close();
  t.equal(await found.baseFiles('AGENTS.md'), 'Be kind.\n', 'without git');
  t.equal(await found.baseFiles('nothing'), null);
  await t.rejects(
    found.baseFiles('src/a.ts'),
    { code: 'gitCommandFailed' },
    'what was not wanted is read when it is asked for',
  );

  const other = await lab.open({ limits: { readBytes: 1_000 } });
  const again = await other.prepare(lab.target({ base, head }, { wantedOfBase, runId: 'run-2' }));
  await t.rejects(again.baseFiles('big.txt'), { code: 'fileTooLarge' });
});

t.test('renames are found, and a large diff is cut after a whole file', async (t) => {
  const lab = new Lab(t);
  const text = Array.from({ length: 40 }, (_, line) => `line ${line}\n`).join('');
  const base = lab.upstream.commitFiles({ 'old name.txt': text, 'gone.txt': 'x\n', run: 'run\n' });
  const head = lab.upstream.commitFiles(
    { 'new\tname.txt': text.replace('line 7', 'line seven'), run: { mode: '100755', sha: lab.upstream.blob('run\n') } },
    [base],
  );
  lab.upstream.setRef('refs/heads/main', base);
  lab.upstream.setHead(7, head);
  lab.copy();
  const reviews = await lab.open();
  const found = await reviews.prepare(lab.target({ base, head }));
  t.strictSame(changes(found), ['deleted gone.txt', 'renamed new\tname.txt', 'modified run']);
  t.equal(found.files[1]?.oldPath, 'old name.txt');
  t.equal(found.files[1]?.additions, 1);
  t.strictSame(
    parseDiff(found.diff).map(({ path }) => path),
    ['gone.txt', 'new\tname.txt', 'run'],
  );

  const small = await lab.open({ limits: { diffBytes: 300 }, worktreeRoot: join(lab.directory, 'other') });
  const cut = await small.prepare(lab.target({ base, head }));
  t.equal(cut.isDiffCut, true);
  t.strictSame(changes(cut), changes(found));
  t.strictSame(
    parseDiff(cut.diff).map(({ path }) => path),
    ['gone.txt'],
  );
});

t.test('the scope of a later review', async (t) => {
  const lab = new Lab(t);
  const { base, head: first } = lab.begin();
  const { upstream } = lab;
  lab.copy();
  const reviews = await lab.open();
  await reviews.prepare(lab.target({ base, head: first }));
  const second = upstream.commitFiles({ 'a.txt': 'one\nTWO\nthree\n', 'c.txt': 'new\n', 'AGENTS.md': 'x' }, [first]);
  const prepare = (runId: string, head: string, sinceSha: string) => {
    upstream.setHead(7, head);
    return reviews.prepare(lab.target({ base, head }, { runId, sinceSha }));
  };

  const next = await prepare('next', second, first);
  t.equal(next.scope, 'incremental');
  t.equal(next.fullReason, null);
  t.strictSame(
    next.since?.files.map(({ path, status }) => `${status} ${path}`),
    ['modified AGENTS.md', 'added c.txt', 'deleted src/b.ts'],
  );
  t.notMatch(next.since?.diff, /TWO/);
  t.match(next.diff, /TWO/, 'the whole change is still there for the anchors');

  const rewritten = upstream.commitFiles({ 'a.txt': 'one\n2\nthree\n' }, [base]);
  t.match(await prepare('forced', rewritten, second), { scope: 'full', fullReason: 'forcePushed', since: null });

  const moved = upstream.commitFiles({ 'a.txt': 'one\ntwo\nthree\nfour\n' }, [base]);
  upstream.setRef('refs/heads/main', moved);
  const merged = upstream.commitFiles({ 'a.txt': 'one\n2\nthree\nfour\n' }, [rewritten, moved]);
  upstream.setHead(7, merged);
  const afterMerge = await reviews.prepare(
    lab.target({ base: moved, head: merged }, { runId: 'merged', sinceSha: rewritten }),
  );
  t.match(afterMerge, { scope: 'full', fullReason: 'baseChanged', mergeBaseSha: moved });

  const lost = '0123456789012345678901234567890123456789';
  t.match(await prepare('lost', merged, lost), { scope: 'full', fullReason: 'objectsMissing' });
  t.match(await prepare('same', merged, merged), { scope: 'full', fullReason: 'sameHead' });
});

t.test('a head that was replaced meanwhile is reported with the present one', async (t) => {
  const lab = new Lab(t);
  const story = lab.begin();
  lab.copy();
  const reviews = await lab.open();
  const forced = lab.upstream.commitFiles({ 'a.txt': 'forced\n' }, [story.base]);
  const target = lab.target(story, {
    // Between the reading of the pull request and the fetch.
    token: async () => {
      lab.upstream.setHead(7, forced);
      return null;
    },
  });
  await t.rejects(reviews.prepare(target), { code: 'reviewTargetMoved', actualHead: forced, isRetryable: true });
  const again = await reviews.prepare(lab.target({ base: story.base, head: forced }));
  t.equal(again.headSha, forced);
});

t.test('present commits are not fetched again', async (t) => {
  const lab = new Lab(t);
  const story = lab.begin();
  lab.copy();
  const reviews = await lab.open();
  let asked = 0;
  const token = async () => {
    asked += 1;
    return null;
  };
  await reviews.prepare(lab.target(story, { token }));
  t.equal(asked, 1);
  await reviews.prepare(lab.target(story, { token, runId: 'run-2' }));
  t.equal(asked, 1);
  await reviews.prepare(lab.target(story, { token, runId: 'run-3', baseRef: 'main', baseSha: story.base, number: 7 }));
  t.equal(asked, 1);
});

t.test('a base that has moved on, or has gone, is dealt with', async (t) => {
  const lab = new Lab(t);
  const story = lab.begin();
  lab.copy();
  const reviews = await lab.open();
  const newer = lab.upstream.commitFiles({ 'a.txt': 'one\ntwo\nthree\n', 'AGENTS.md': 'New rules.\n' }, [story.base]);
  lab.upstream.setRef('refs/heads/main', newer);
  const found = await reviews.prepare(lab.target(story));
  t.equal(found.baseSha, newer, 'rules are read from the tip');
  t.equal(found.mergeBaseSha, story.base);
  t.equal(await found.baseFiles('AGENTS.md'), 'New rules.\n');

  git(lab.upstream.path, ['update-ref', '-d', 'refs/heads/main']);
  const other = await lab.open({ worktreeRoot: join(lab.directory, 'other') });
  const gone = await other.prepare(lab.target(story));
  t.equal(gone.baseSha, story.base);
});

t.test('branches with strange names, and names that contain each other', async (t) => {
  const lab = new Lab(t);
  const { base, head } = lab.begin();
  lab.copy();
  const reviews = await lab.open();
  for (const [index, baseRef] of ['-x', 'a', '+y', "it's $(touch x)", 'ünï', '--upload-pack=x', 'HEAD'].entries()) {
    lab.upstream.setRef(`refs/heads/${baseRef}`.replaceAll(' ', '_'), base);
    const name = baseRef.replaceAll(' ', '_');
    const found = await reviews.prepare(lab.target({ base, head }, { baseRef: name, runId: `run-${index}` }));
    t.equal(found.baseSha, base, baseRef);
  }
  git(lab.upstream.path, ['update-ref', '-d', 'refs/heads/a']);
  lab.upstream.setRef('refs/heads/a/b', base);
  t.equal((await reviews.prepare(lab.target({ base, head }, { baseRef: 'a/b', runId: 'nested' }))).baseSha, base);
  for (const baseRef of ['', 'a..b', 'a b', 'x:y', 'a*', 'a~1', 'a.lock', '/a', 'a/', '.a', 'a@{1}', 'a\nb']) {
    await t.rejects(reviews.prepare(lab.target({ base, head }, { baseRef })), { code: 'reviewTargetFetchFailed' });
  }
});

t.test('a missing common ancestor, a missing pull request and invalid names are refused', async (t) => {
  const lab = new Lab(t);
  const { base, head } = lab.begin();
  lab.copy();
  const reviews = await lab.open();
  const orphan = lab.upstream.commitFiles({ 'z.txt': 'z' });
  lab.upstream.setHead(8, orphan);
  await t.rejects(reviews.prepare(lab.target({ base, head: orphan }, { number: 8 })), {
    code: 'mergeBaseMissing',
    isRetryable: false,
  });
  await t.rejects(reviews.prepare(lab.target({ base, head }, { number: 99 })), { code: 'reviewTargetFetchFailed' });
  await t.rejects(reviews.prepare(lab.target({ base, head: 'HEAD' })), { code: 'gitCommandFailed' });
  await t.rejects(reviews.prepare(lab.target({ base, head: 'a'.repeat(64) })), { code: 'objectFormatUnsupported' });
  const repository = { instance: 'forge.test', owner: '..', name: 'widgets' };
  await t.rejects(reviews.prepare(lab.target({ base, head }, { repository })), { code: 'pathOutside' });
});

t.test('many runs at once, in two instances, share one store', async (t) => {
  const lab = new Lab(t);
  const { base } = lab.begin();
  lab.copy();
  const replicas = [await lab.open(), await lab.open()];
  const runs = Array.from({ length: 12 }, (_, index) => {
    const head = lab.upstream.commitFiles({ 'a.txt': `head ${index}\n` }, [base]);
    lab.upstream.setHead(index + 1, head);
    return { head, number: index + 1, runId: `run-${index}` };
  });
  const found = await Promise.all(
    runs.map(({ head, number, runId }, index) =>
      replicas[index % 2]?.prepare(lab.target({ base, head }, { number, runId })),
    ),
  );
  t.equal(new Set(found.map((review) => review?.worktreePath)).size, runs.length);
  for (const [index, review] of found.entries()) {
    t.equal(readFileSync(join(review?.worktreePath ?? '', 'a.txt'), 'utf8'), `head ${index}\n`);
  }
});

t.test('an aborted run stops waiting and leaves the others alone', async (t) => {
  const lab = new Lab(t);
  const story = lab.begin();
  lab.copy();
  const reviews = await lab.open();
  const stop = new AbortController();
  const { promise: isFetching, resolve: fetching } = Promise.withResolvers<void>();
  const { promise: mayGoOn, resolve: goOn } = Promise.withResolvers<void>();
  const first = reviews.prepare(
    lab.target(story, {
      token: async () => {
        fetching();
        await mayGoOn;
        return null;
      },
    }),
  );
  await isFetching;
  const second = reviews.prepare(lab.target(story, { runId: 'run-2', signal: stop.signal }));
  const third = reviews.prepare(lab.target(story, { runId: 'run-3' }));
  stop.abort(new Error('cancelled'));
  await t.rejects(second, { message: 'cancelled' });
  goOn();
  t.equal((await first).headSha, story.head);
  t.equal((await third).headSha, story.head);
});

t.test('the change since an earlier head has its renames, also of a full review; a lost head has none', async (t) => {
  const lab = new Lab(t);
  const { base, head: first } = lab.begin();
  const file = 'export const b = 1;\nexport const c = 2;\n';
  const second = lab.upstream.commitFiles({ 'a.txt': 'one\nTWO\nthree\n', 'src/b.ts': file }, [first]);
  const head = lab.upstream.commitFiles({ 'a.txt': 'one\nTWO\nthree\n', 'lib/moved.ts': file }, [second]);
  lab.upstream.setHead(7, head);
  lab.clone();
  const found = await (await lab.open()).prepare(lab.target({ base, head }));
  t.equal(found.since, null);
  t.match(await found.changeSince(second), {
    files: [{ path: 'lib/moved.ts', oldPath: 'src/b.ts', status: 'renamed' }],
  });
  t.same(await found.changeSince(head), { files: [], diff: '', isDiffCut: false });
  t.equal(await found.changeSince('0'.repeat(39).concat('1')), null);
  t.equal(await found.changeSince('--output=/tmp/x'), null);
});
