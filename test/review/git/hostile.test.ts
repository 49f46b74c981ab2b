import { execFileSync, spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, lstatSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import { parseDiff } from '../../../src/review/anchors/index.ts';
import type { PreparedReview, ReviewGit } from '../../../src/review/git/index.ts';
import { type Content, git, Lab, photograph, put } from './helpers.ts';

const hooks = [
  'applypatch-msg',
  'post-checkout',
  'post-commit',
  'post-index-change',
  'post-merge',
  'post-rewrite',
  'post-update',
  'pre-auto-gc',
  'pre-commit',
  'pre-receive',
  'push-to-checkout',
  'reference-transaction',
  'fsmonitor-watchman',
  'sendemail-validate',
  'update',
];

/** A file that exists when something of the attacker's ran. */
class Canary {
  readonly directory: string;
  /** A command that leaves a trace. */
  readonly command: string;

  constructor(lab: Lab) {
    this.directory = join(lab.directory, 'canary');
    const script = join(this.directory, 'run.sh');
    put(script, `#!/bin/sh\necho "$0 $*" >> ${this.directory}/ran\ncat\n`, 0o755);
    this.command = script;
  }

  /** What ran since the last look. */
  look(): string {
    const file = join(this.directory, 'ran');
    if (!existsSync(file)) return '';
    const said = readFileSync(file, 'utf8');
    rmSync(file);
    return said;
  }
}

/** The whole life of a review. */
async function live(reviews: ReviewGit, target: Parameters<ReviewGit['prepare']>[0]): Promise<PreparedReview> {
  const found = await reviews.prepare(target);
  for (const { path, status, isNameBroken } of found.files) {
    if (status !== 'deleted' && !isNameBroken) await found.readHead(path).catch(() => null);
  }
  await reviews.verifyClean(found.worktreePath);
  return found;
}

/** Builds pull request 7 of these files upon a base of those. */
function story(lab: Lab, head: Record<string, Content>, base: Record<string, Content> = { 'a.txt': 'one\n' }) {
  const baseSha = lab.upstream.commitFiles(base);
  const headSha = lab.upstream.commitFiles(head, [baseSha]);
  lab.upstream.setRef('refs/heads/main', baseSha);
  lab.upstream.setHead(7, headSha);
  return { base: baseSha, head: headSha };
}

function configure(file: string, section: string, entries: Readonly<Record<string, string>>): void {
  const lines = Object.entries(entries).map(([key, value]) => `\t${key} = ${JSON.stringify(value)}\n`);
  appendFileSync(file, `[${section}]\n${lines.join('')}`);
}

/** Everything in a configuration that names a program or bends where git goes. */
function plantConfig(file: string, command: string): void {
  configure(file, 'core', {
    hooksPath: join(command, '..'),
    fsmonitor: command,
    sshCommand: command,
    gitProxy: command,
    askPass: command,
    pager: command,
    editor: command,
    alternateRefsCommand: command,
    attributesFile: join(command, '..', 'attributes'),
  });
  configure(file, 'diff', { external: command });
  configure(file, 'diff "evil"', { command, textconv: command });
  configure(file, 'filter "evil"', { smudge: command, clean: command, process: command, required: 'true' });
  configure(file, 'merge "evil"', { driver: command });
  configure(file, 'alias', { fetch: `!${command}`, worktree: `!${command}`, status: `!${command}` });
  configure(file, 'credential', { helper: `!${command}` });
  configure(file, 'uploadpack', { packObjectsHook: command });
  configure(file, 'remote "oratorio"', { url: `ext::${command}`, uploadpack: command, vcs: 'evil' });
  configure(file, 'url "ext::sh -c evil"', { insteadOf: 'file://' });
  configure(file, 'protocol "ext"', { allow: 'always' });
  configure(file, 'gpg', { program: command });
  configure(file, 'pager', { 'for-each-ref': command, 'rev-list': command });
}

/** As somebody who trusts the checkout; it may fail of what was planted. */
function runOrdinaryGit(directory: string): void {
  spawnSync('git', ['diff-files', '-p'], { cwd: directory, env: { PATH: process.env['PATH'] }, stdio: 'ignore' });
}

t.test('what is planted in a checkout is never run, and the checkout stays as it is', async (t) => {
  const lab = new Lab(t);
  const { upstream } = lab;
  const target = lab.target(
    story(lab, { 'a.txt': 'two\n', '.gitattributes': '* filter=evil diff=evil merge=evil\n', 'b.txt': 'b\n' }),
  );
  lab.clone();
  const canary = new Canary(lab);
  const gitDir = join(lab.workspace, '.git');
  for (const name of hooks) {
    for (const directory of [join(gitDir, 'hooks'), canary.directory]) {
      put(join(directory, name), `#!/bin/sh\nexec ${canary.command} ${name}\n`, 0o755);
    }
  }
  put(join(gitDir, 'info', 'attributes'), '* filter=evil diff=evil\n');
  put(join(canary.directory, 'attributes'), '* filter=evil diff=evil\n');
  git(lab.workspace, ['worktree', 'add', '--quiet', join(lab.directory, 'control')]);
  t.match(canary.look(), /post-checkout/, 'the trap works for those who run git in the checkout');
  plantConfig(join(gitDir, 'config'), canary.command);
  configure(join(gitDir, 'config'), 'include', { path: join(canary.directory, 'included') });
  plantConfig(join(canary.directory, 'included'), canary.command);
  configure(join(gitDir, 'config'), 'extensions', { worktreeConfig: 'true' });
  plantConfig(join(gitDir, 'config.worktree'), canary.command);
  runOrdinaryGit(lab.workspace);
  t.match(canary.look(), /run\.sh/, 'and so does that in the configuration');

  const before = photograph(lab.workspace);
  const reviews = await lab.open();
  const found = await live(reviews, target);
  t.equal(readFileSync(join(found.worktreePath, 'b.txt'), 'utf8'), 'b\n');
  const next = upstream.commitFiles({ 'a.txt': 'three\n' }, [target.headSha]);
  upstream.setHead(7, next);
  await live(reviews, { ...target, headSha: next, sinceSha: target.headSha, runId: 'run-2' });
  await reviews.release('run-1', 'succeeded');
  await reviews.clean(new Date(Date.now() + 1e12), () => false);
  t.equal(canary.look(), '', 'nothing ran');
  t.strictSame(photograph(lab.workspace), before);
});

t.test('hooks and configuration of a bare and of a partial checkout are not used either', async (t) => {
  for (const args of [['--bare'], ['--filter=blob:none', '--no-checkout'], ['--depth=1', '--bare']]) {
    const lab = new Lab(t);
    const target = lab.target(story(lab, { 'a.txt': 'two\n' }));
    lab.clone(...args);
    const canary = new Canary(lab);
    const gitDir = existsSync(join(lab.workspace, 'HEAD')) ? lab.workspace : join(lab.workspace, '.git');
    for (const name of hooks) put(join(gitDir, 'hooks', name), `#!/bin/sh\nexec ${canary.command}\n`, 0o755);
    plantConfig(join(gitDir, 'config'), canary.command);
    await live(await lab.open(), target);
    t.equal(canary.look(), '', args.join(' '));
  }
});

t.test('programs that somebody planted in our own store are not run', async (t) => {
  const lab = new Lab(t);
  const target = lab.target(story(lab, { 'a.txt': 'two\n', '.gitattributes': '* filter=evil\n' }));
  lab.clone();
  const canary = new Canary(lab);
  const reviews = await lab.open();
  await reviews.prepare(target);
  const stores = join(lab.root, '.stores');
  const store = join(stores, readdirSync(stores).find((name) => name.endsWith('.git')) ?? '');
  for (const name of hooks) put(join(store, 'hooks', name), `#!/bin/sh\nexec ${canary.command}\n`, 0o755);
  const { command } = canary;
  configure(join(store, 'config'), 'core', { hooksPath: join(store, 'hooks'), fsmonitor: command, pager: command });
  configure(join(store, 'config'), 'filter "evil"', { smudge: command, clean: command, required: 'true' });
  configure(join(store, 'config'), 'diff', { external: command });
  const next = lab.upstream.commitFiles({ 'a.txt': 'three\n' }, [target.headSha]);
  lab.upstream.setHead(7, next);
  await live(reviews, { ...target, headSha: next, runId: 'run-2' });
  await reviews.clean(new Date(Date.now() + 1e12), () => false);
  t.equal(canary.look(), '');
});

t.test('attributes of the head neither convert, nor hide, nor run', async (t) => {
  const lab = new Lab(t);
  const attributes = [
    '* filter=evil diff=evil text eol=crlf ident',
    '*.ts -diff binary',
    '*.u16 working-tree-encoding=UTF-16LE',
    'version export-subst export-ignore',
    '[attr]evil filter=evil diff=evil',
    'bad working-tree-encoding',
  ].join('\n');
  const head = {
    '.gitattributes': `${attributes}\n`,
    'src/.gitattributes': '*.ts -diff\n',
    'src/hidden.ts': 'steal();\n',
    'a.u16': 'plain\n',
    'crlf.txt': 'one\r\ntwo\n',
    version: '$Id$ $Format:%H$\n',
    bad: 'bad\n',
  };
  const target = lab.target(story(lab, head));
  lab.clone();
  const found = await live(await lab.open(), target);
  for (const [path, content] of Object.entries(head)) {
    t.equal(readFileSync(join(found.worktreePath, path), 'latin1'), content, path);
    t.equal(await found.readHead(path), content, path);
  }
  t.match(found.diff, /\+steal\(\);/, 'the change is in the diff');
  t.strictSame(
    found.files.filter(({ isBinary }) => isBinary),
    [],
  );
});

t.test('links are files that hold their target', async (t) => {
  const lab = new Lab(t);
  const head: Record<string, Content> = {
    passwd: { link: '/etc/passwd' },
    up: { link: '../../../../../../etc' },
    self: { link: '.' },
    'docs/git': { link: '../.git' },
    'sub/dir': { link: '/' },
    'empty-link': { mode: '120000', sha: lab.upstream.blob('') },
  };
  const target = lab.target(story(lab, head, { passwd: 'was a file\n' }));
  lab.clone();
  const found = await live(await lab.open(), target);
  for (const path of Object.keys(head)) {
    t.ok(lstatSync(join(found.worktreePath, path)).isFile(), `${path} is a file`);
    t.equal(await found.readHead(path), null);
  }
  t.equal(readFileSync(join(found.worktreePath, 'passwd'), 'utf8'), '/etc/passwd');
  t.equal(await found.readHead('sub/dir/etc/passwd'), null);
  t.equal(git(found.worktreePath, ['status', '--porcelain']), '', 'also for those who run git in the worktree');
  t.strictSame(
    found.files.map(({ isSymlink }) => isSymlink),
    Object.keys(head).map(() => true),
  );
  t.notMatch(found.diff, /root:/);
});

t.test('submodules are shown, never fetched', async (t) => {
  const lab = new Lab(t);
  const canary = new Canary(lab);
  const sha = '0123456789012345678901234567890123456789';
  const modules = ['ext::', '-u', '--upload-pack=', 'file://', ''].map(
    (prefix, index) =>
      `[submodule "../../m${index}"]\n\tpath = m${index}\n\turl = ${prefix}${canary.command}\n\tupdate = !${canary.command}\n\tignore = all\n`,
  );
  const target = lab.target(
    story(lab, {
      'a.txt': 'one\n',
      '.gitmodules': modules.join(''),
      m0: { mode: '160000', sha },
      'x/-m1': { mode: '160000', sha },
    }),
  );
  lab.clone();
  const found = await live(await lab.open(), target);
  t.strictSame(
    found.files.map(({ path, isSubmodule }) => [path, isSubmodule]),
    [
      ['.gitmodules', false],
      ['m0', true],
      ['x/-m1', true],
    ],
  );
  t.strictSame(readdirSync(join(found.worktreePath, 'm0')), []);
  t.equal(canary.look(), '');
});

t.test('names that mean .git are refused, and nothing of them is written', async (t) => {
  const lab = new Lab(t);
  const { upstream } = lab;
  const base = upstream.commitFiles({ 'a.txt': 'one\n' });
  upstream.setRef('refs/heads/main', base);
  lab.clone();
  const reviews = await lab.open();
  const before = photograph(lab.workspace);
  const inner = upstream.tree([['100755', 'blob', upstream.blob('#!/bin/sh\n'), 'post-checkout']]);
  const plain = ['.git', '.GIT', '.Git', 'git~1', 'GIT~1', '..', '.'];
  const odd = ['.git ', '.git.', '.git::$INDEX_ALLOCATION', '.g\u200cit'];
  for (const [index, name] of [...plain, ...odd].entries()) {
    const number = index + 1;
    const head = upstream.commit(upstream.tree([['040000', 'tree', inner, name]]), [base]);
    upstream.setHead(number, head);
    const target = lab.target({ base, head }, { number, runId: `run-${number}` });
    await t.rejects(reviews.prepare(target), { code: 'treeUnsafe', isRetryable: false }, JSON.stringify(name));
    await reviews.release(target.runId, 'failed');
  }
  t.strictSame(photograph(lab.workspace), before);
  t.strictSame(readdirSync(lab.directory).sort(), ['forge', 'workspace', 'worktrees']);
  t.equal((await reviews.clean(new Date(Date.now() + 1e12), () => false)).failed.length, 0);
});

t.test('a tree with a link and a directory of the same name writes nothing through the link', async (t) => {
  const lab = new Lab(t);
  const { upstream } = lab;
  const outside = join(lab.directory, 'outside');
  put(join(outside, 'precious'), 'precious');
  const base = upstream.commitFiles({ 'a.txt': 'one\n' });
  const inner = upstream.tree([['100644', 'blob', upstream.blob('evil'), 'evil']]);
  const link = upstream.blob(outside);
  const tree = upstream.tree([
    ['120000', 'blob', link, 'd'],
    ['040000', 'tree', inner, 'd'],
  ]);
  const head = upstream.commit(tree, [base]);
  upstream.setRef('refs/heads/main', base);
  upstream.setHead(7, head);
  lab.clone();
  const reviews = await lab.open();
  await reviews.prepare(lab.target({ base, head })).catch(() => null);
  t.strictSame(readdirSync(outside), ['precious']);
});

t.test('odd names are told as they are', async (t) => {
  const lab = new Lab(t);
  const names = [
    'a\nb',
    'q"uote',
    "it's",
    '-rf',
    '--help',
    ' space ',
    'tab\tname',
    'back\\slash',
    'CON',
    'a:b',
    '😀é',
    '$(id)',
    '`id`',
    '\u202egnp.exe',
    'README',
    'readme',
    '*',
    ':(top)',
  ];
  const head = Object.fromEntries(names.map((name) => [`dir/${name}`, `${name.length}\n`]));
  const target = lab.target(story(lab, head));
  lab.clone();
  const found = await live(await lab.open(), target);
  const added = found.files.filter(({ status }) => status === 'added').map(({ path }) => path);
  t.strictSame([...added].sort(), Object.keys(head).sort());
  t.strictSame(
    parseDiff(found.diff)
      .map(({ path }) => path)
      .sort(),
    found.files.map(({ path }) => path).sort(),
  );
  for (const [path, content] of Object.entries(head)) {
    t.equal(readFileSync(join(found.worktreePath, path), 'utf8'), content);
    t.equal(await found.readHead(path), content, JSON.stringify(path));
  }
});

t.test('names of any bytes: those that are no text are marked, none is lost', async (t) => {
  const lab = new Lab(t);
  const base = lab.upstream.commitFiles({ 'a.txt': 'one\n' });
  lab.upstream.setRef('refs/heads/main', base);
  lab.clone();
  const reviews = await lab.open();
  const blob = lab.upstream.blob('content\n');
  const anyName = fc
    .uint8Array({ minLength: 1, maxLength: 12 })
    .map((bytes) =>
      Buffer.concat([Buffer.from('n'), Buffer.from(bytes.filter((byte) => byte !== 0 && byte !== 0x2f))]),
    );
  let number = 100;
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(anyName, { minLength: 1, maxLength: 15, selector: (name) => name.toString('latin1') }),
      async (names) => {
        number += 1;
        const entries = [['100644', 'blob', lab.upstream.blob('one\n'), 'a.txt'] as const];
        const tree = lab.upstream.tree([...entries, ...names.map((name) => ['100644', 'blob', blob, name] as const)]);
        const head = lab.upstream.commit(tree, [base], `change ${number}`);
        lab.upstream.setHead(number, head);
        const found = await live(reviews, lab.target({ base, head }, { number, runId: `run-${number}` }));
        const expected = names.map(
          (name) => `${name.toString('utf8')} ${Buffer.from(name.toString('utf8')).equals(name) ? 'text' : 'broken'}`,
        );
        const told = found.files.map(({ path, isNameBroken }) => `${path} ${isNameBroken ? 'broken' : 'text'}`);
        t.strictSame(told.sort(), expected.sort());
        t.equal(parseDiff(found.diff).length, names.length);
      },
    ),
    { numRuns: 15 },
  );
});

t.test('a huge file stays out of the worktree and out of memory', async (t) => {
  const lab = new Lab(t);
  const huge = Buffer.alloc(200 * 1_024 * 1_024);
  const target = lab.target(story(lab, { 'zeros.bin': huge, 'zeros.txt': huge.fill(0x61), 'b.txt': 'b\n' }));
  lab.clone('--no-checkout');
  const reviews = await lab.open();
  const found = await live(reviews, target);
  t.strictSame(found.omitted, [
    { path: 'zeros.bin', reason: 'tooLarge' },
    { path: 'zeros.txt', reason: 'tooLarge' },
  ]);
  t.notOk(existsSync(join(found.worktreePath, 'zeros.bin')));
  t.equal(readFileSync(join(found.worktreePath, 'b.txt'), 'utf8'), 'b\n');
  t.equal(found.files.find(({ path }) => path === 'zeros.txt')?.isBinary, true);
  t.ok(found.diff.length < 2_000);
  await t.rejects(found.readHead('zeros.txt'), { code: 'fileTooLarge' });
  execFileSync('chmod', ['-R', 'u+w', found.worktreePath]);
  put(join(found.worktreePath, 'zeros.bin'), 'planted');
  await t.rejects(reviews.verifyClean(found.worktreePath), { code: 'worktreeDirty' });
});

t.test('names that no file system takes are left out', async (t) => {
  const lab = new Lab(t);
  const long = 'n'.repeat(300);
  const deep = `${'d/'.repeat(2_500)}file`;
  const { base } = lab.begin();
  const head = lab.upstream.importFiles({ [long]: 'long\n', [deep]: 'deep\n', 'b.txt': 'b\n' }, base);
  lab.upstream.setHead(7, head);
  const target = lab.target({ base, head });
  lab.clone('--no-checkout');
  const found = await live(await lab.open(), target);
  t.strictSame(found.omitted.map(({ path, reason }) => [path.length, reason]).sort(), [
    [300, 'nameTooLong'],
    [5_004, 'nameTooLong'],
  ]);
  t.equal(readFileSync(join(found.worktreePath, 'b.txt'), 'utf8'), 'b\n');
  t.equal(await found.readHead(deep), 'deep\n');
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
  lab.clone('--no-checkout');
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

t.test('ten thousand files', async (t) => {
  const lab = new Lab(t);
  const files: Record<string, Content> = {};
  const sha = lab.upstream.blob('same\n');
  for (let index = 0; index < 10_000; index += 1) {
    files[`d${index % 100}/f${index}.ts`] = { mode: '100644', sha };
  }
  const target = lab.target(story(lab, files));
  lab.clone('--no-checkout');
  const reviews = await lab.open();
  const found = await reviews.prepare(target);
  t.equal(found.files.length, 10_001);
  t.equal(parseDiff(found.diff).length, 10_001);
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
  lab.clone();
  const found = await live(await lab.open(), target);
  for (const [path, bytes] of Object.entries(contents)) {
    t.equal(await found.readHead(path), bytes.toString('utf8'), path);
    t.ok(readFileSync(join(found.worktreePath, path)).equals(bytes), path);
  }
  const lines = parseDiff(found.diff).find(({ path }) => path === 'cut.txt')?.hunks[0]?.lines;
  t.equal(lines?.length, 2, 'a character that is cut off swallows no line');
});

t.test('a hostile ref of the remote is not fetched', async (t: Test) => {
  const lab = new Lab(t);
  const target = lab.target(story(lab, { 'a.txt': 'two\n' }));
  const blob = lab.upstream.blob('x');
  lab.upstream.setRef('refs/pull/7/merge', target.headSha);
  lab.upstream.setRef('refs/tags/v1', blob);
  lab.upstream.setRef(`refs/replace/${target.headSha}`, target.baseSha);
  lab.clone();
  const found = await live(await lab.open(), target);
  t.equal(found.files.length, 1, 'a replacement does not change what is seen');
  const [store = ''] = readdirSync(join(lab.root, '.stores')).filter((name) => name.endsWith('.git'));
  const names = git(join(lab.root, '.stores', store), ['for-each-ref', '--format=%(refname)']).split('\n');
  t.ok(
    names.every((name) => name.startsWith('refs/oratorio/')),
    names.join(' '),
  );
  lab.upstream.setHead(8, blob);
  await t.rejects((await lab.open()).prepare(lab.target({ base: target.baseSha, head: blob }, { number: 8 })));
});
