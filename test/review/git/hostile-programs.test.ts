import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { Canary, configure, hooks, live, plantConfig, runOrdinaryGit, story } from './attacker.ts';
import { type Content, git, Lab, photograph, put } from './helpers.ts';

t.test('programs planted in a checkout never run, and the checkout stays unchanged', async (t) => {
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

t.test('planted programs in our own store are not run', async (t) => {
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

t.test('pointers of LFS stay pointers', async (t) => {
  const lab = new Lab(t);
  const canary = new Canary(lab);
  const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${'0'.repeat(64)}\nsize 12\n`;
  const target = lab.target(
    story(lab, {
      '.gitattributes': '*.bin filter=lfs diff=lfs merge=lfs -text\n',
      '.lfsconfig': `[lfs]\n\turl = ext::${canary.command}\n\tcustomtransfer.x.path = ${canary.command}\n`,
      'big.bin': pointer,
    }),
  );
  lab.clone();
  const { command } = canary;
  configure(join(lab.workspace, '.git', 'config'), 'filter "lfs"', {
    smudge: command,
    clean: command,
    process: command,
    required: 'true',
  });
  const found = await live(await lab.open(), target);
  t.equal(readFileSync(join(found.worktreePath, 'big.bin'), 'utf8'), pointer);
  t.match(found.diff, /\+oid sha256:0/);
  t.equal(canary.look(), '');
});

t.test('a repository inside the repository is a heap of files', async (t) => {
  const lab = new Lab(t);
  const canary = new Canary(lab);
  const script = { mode: '100755', sha: lab.upstream.blob(`#!/bin/sh\nexec ${canary.command}\n`) };
  const inner: Record<string, Content> = {
    HEAD: 'ref: refs/heads/main\n',
    config: `[core]\n\tworktree = ..\n\tfsmonitor = ${canary.command}\n[diff]\n\texternal = ${canary.command}\n`,
    commondir: '/etc\n',
    index: 'DIRC',
    'hooks/post-checkout': script,
    'info/attributes': '* filter=evil\n',
    'info/grafts': 'x\n',
    'objects/info/alternates': '/etc\n',
    'refs/heads/main': `${'0'.repeat(40)}\n`,
  };
  const nested = Object.entries(inner).map(([path, content]) => [`vendor/x.git/${path}`, content] as const);
  const target = lab.target(story(lab, { ...inner, ...Object.fromEntries(nested) }));
  lab.clone('--no-checkout');
  const reviews = await lab.open();
  const found = await live(reviews, target);
  t.equal(readFileSync(join(found.worktreePath, 'vendor/x.git/commondir'), 'utf8'), '/etc\n');
  t.equal(found.files.length, 2 * nested.length + 1);
  await reviews.release('run-1', 'succeeded');
  t.equal((await reviews.clean(new Date(Date.now() + 1e12), () => false)).failed.length, 0);
  t.equal(canary.look(), '');
});
