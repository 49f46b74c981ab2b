import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { parseDiff } from '../../../src/review/anchors/index.ts';
import { live, story } from './attacker.ts';
import { type Content, Lab, put } from './helpers.ts';

const MiB = 1_024 * 1_024;
/** The proportion counts: no git process may hold even half of the file. */
const sizes = {
  huge: 12 * MiB,
  limits: { memoryBytes: 5 * MiB, bigFileBytes: MiB, worktreeFileBytes: MiB, readBytes: MiB },
};

t.test('a huge file stays out of the worktree and out of memory', async (t) => {
  const lab = new Lab(t);
  const lines = Buffer.alloc(sizes.huge, 'all work and no play\n');
  const changed = Buffer.concat([lines, Buffer.from('one more\n')]);
  const head = { 'zeros.bin': Buffer.alloc(sizes.huge), 'lines.txt': changed, 'b.txt': 'b\n' };
  const target = lab.target(story(lab, head, { 'lines.txt': lines }));
  lab.copy();
  const reviews = await lab.open({ limits: sizes.limits });
  const found = await live(reviews, target);
  t.strictSame(found.omitted, [
    { path: 'lines.txt', reason: 'tooLarge' },
    { path: 'zeros.bin', reason: 'tooLarge' },
  ]);
  t.notOk(existsSync(join(found.worktreePath, 'zeros.bin')));
  t.equal(readFileSync(join(found.worktreePath, 'b.txt'), 'utf8'), 'b\n');
  t.equal(found.files.find(({ path }) => path === 'lines.txt')?.isBinary, true);
  t.ok(found.diff.length < 2_000);
  await t.rejects(found.readHead('lines.txt'), { code: 'fileTooLarge' });
  t.equal((await found.readHeadFiles(['lines.txt'])).get('lines.txt'), null);
  execFileSync('chmod', ['-R', 'u+w', found.worktreePath]);
  put(join(found.worktreePath, 'zeros.bin'), 'planted');
  await t.rejects(reviews.verifyClean(found.worktreePath), { code: 'worktreeDirty' });
});

t.test('renames of huge files are not looked for when that needs too much memory', async (t) => {
  const lab = new Lab(t);
  const lines = Buffer.alloc(sizes.huge, 'all work and no play\n');
  const moved = Buffer.concat([lines, Buffer.from('one more\n')]);
  const target = lab.target(story(lab, { 'new.txt': moved, 'b.txt': 'b\n' }, { 'old.txt': lines, 'b.txt': 'a\n' }));
  lab.copy();
  const found = await live(await lab.open({ limits: sizes.limits }), target);
  t.strictSame(
    found.files.map(({ path, status }) => `${status} ${path}`),
    ['modified b.txt', 'added new.txt', 'deleted old.txt'],
  );
  t.match(found.diff, /\+b\n/);
});

t.test('git that needs more memory than it may have is a failure that stays', async (t) => {
  const lab = new Lab(t);
  const lines = Buffer.alloc(sizes.huge, 'all work and no play\n');
  const changed = Buffer.concat([lines, Buffer.from('one more\n')]);
  const target = lab.target(story(lab, { 'lines.txt': changed }, { 'lines.txt': lines }));
  lab.copy();
  const large = { bigFileBytes: 2 * sizes.huge, worktreeFileBytes: 2 * sizes.huge };
  const reviews = await lab.open({ limits: { ...sizes.limits, ...large } });
  await t.rejects(reviews.prepare(target), {
    code: 'gitMemoryExceeded',
    isRetryable: false,
    message: /^git [a-z-]+ needed more memory than it may have$/,
  });
  await reviews.release('run-1', 'failed');
  t.equal((await reviews.clean(new Date(Date.now() + 1e12), () => false)).failed.length, 0);
  const poor = await lab.open({
    worktreeRoot: join(lab.directory, 'other'),
    limits: { fetchMemoryBytes: 512 * 1_024 },
  });
  await t.rejects(poor.prepare(target), {
    code: 'reviewTargetFetchFailed',
    isRetryable: false,
    message: /too much memory/,
  });
});

t.test('the bytes read at once are bounded', async (t) => {
  const lab = new Lab(t);
  const files = Object.fromEntries(Array.from({ length: 10 }, (_, index) => [`f${index}`, `${index}`.repeat(1_000)]));
  const target = lab.target(story(lab, files));
  lab.copy();
  const found = await live(await lab.open({ limits: { readAllBytes: 3_500 } }), target);
  const texts = await found.readHeadFiles(Object.keys(files));
  t.strictSame(
    [...texts].filter(([, text]) => text !== null).map(([path]) => path),
    ['f0', 'f1', 'f2'],
  );
  t.equal(texts.size, 10);
});

t.test('a tree of trees of trees is refused before anything is written', async (t) => {
  const lab = new Lab(t);
  const { upstream } = lab;
  const base = upstream.commitFiles({ 'a.txt': 'one\n' });
  let tree = upstream.tree([['100644', 'blob', upstream.blob('bomb'), 'leaf']]);
  for (let level = 0; level < 10; level += 1) {
    const inner = tree;
    tree = upstream.tree(Array.from({ length: 10 }, (_, index) => ['040000', 'tree', inner, `d${index}`] as const));
  }
  const head = upstream.commit(tree, [base]);
  upstream.setRef('refs/heads/main', base);
  upstream.setHead(7, head);
  lab.copy();
  const reviews = await lab.open({ limits: { listingBytes: 1_000_000 } });
  await t.rejects(reviews.prepare(lab.target({ base, head })), { code: 'treeTooLarge', isRetryable: false });
  t.strictSame(
    readdirSync(lab.root).filter((name) => !name.startsWith('.')),
    [],
  );
  const small = await lab.open({ limits: { treeFiles: 1 } });
  const two = upstream.commitFiles({ a: 'a', b: 'b' }, [base]);
  upstream.setHead(7, two);
  await t.rejects(small.prepare(lab.target({ base, head: two })), { code: 'treeTooLarge' });
});

t.test('five thousand files', async (t) => {
  const lab = new Lab(t);
  const files: Record<string, Content> = {};
  const sha = lab.upstream.blob('same\n');
  for (let index = 0; index < 5_000; index += 1) {
    files[`d${index % 100}/f${index}.ts`] = { mode: '100644', sha };
  }
  const target = lab.target(story(lab, files));
  lab.copy();
  const reviews = await lab.open();
  const found = await reviews.prepare(target);
  t.equal(found.files.length, 5_001);
  t.equal(parseDiff(found.diff).length, 5_001);
  await reviews.verifyClean(found.worktreePath);
  const some = Array.from({ length: 500 }, (_, index) => `d${index % 100}/f${index}.ts`);
  t.equal(
    [...(await found.readHeadFiles(some)).values()].every((text) => text === 'same\n'),
    true,
  );
  await reviews.release('run-1', 'succeeded');
  t.equal((await reviews.clean(new Date(Date.now() + 1e12), () => false)).removed.length, 2, 'worktree and store');
});

t.test('text in odd encodings is read without an error, line by line', async (t) => {
  const lab = new Lab(t);
  const contents: Record<string, Buffer> = {
    'latin1.txt': Buffer.from('a\n\xe9\xe8\nb\n', 'latin1'),
    'utf16.txt': Buffer.from('\ufeffhello\n', 'utf16le'),
    'bom.txt': Buffer.from('\ufeffhello\n'),
    'cut.txt': Buffer.from([0xe2, 0x82, 0x0a, 0xf0, 0x9f, 0x0a]),
    'nul.txt': Buffer.from('a\0b\n'),
    'cr.txt': Buffer.from('a\rb\r\nc'),
  };
  const target = lab.target(story(lab, { 'a.txt': 'one\n', ...contents }));
  lab.copy();
  const found = await live(await lab.open(), target);
  for (const [path, bytes] of Object.entries(contents)) {
    t.equal(await found.readHead(path), bytes.toString('utf8'), path);
    t.ok(readFileSync(join(found.worktreePath, path)).equals(bytes), path);
  }
  const lines = parseDiff(found.diff).find(({ path }) => path === 'cut.txt')?.hunks[0]?.lines;
  t.equal(lines?.length, 2, 'a character that is cut off swallows no line');
});
