import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { openDirectory } from '../../../src/agent/tools/files/handles.ts';
import { createEditFile, createReadFile, createWriteFile } from '../../../src/agent/tools/files/index.ts';
import { replaceFile } from '../../../src/agent/tools/files/replace-file.ts';
import { PinnedDirectory } from '../../../src/lib/index.ts';
import { adversary, places, resultText, review, settings } from './file-tools.ts';
import { contextOf } from './run-tool.ts';

const write = createWriteFile(settings());
const onPosix = { skip: process.platform === 'win32' && 'symlinks and permissions are those of POSIX' };
const { signal } = new AbortController();

t.test('a file is created with its directories, or replaced, and the result names which', async (t) => {
  const { workspace, at } = places(t);
  t.equal(
    await resultText(write, { path: 'a/b/c.txt', content: 'one\ntwo\n' }, workspace),
    'Created a/b/c.txt (8 bytes, 2 lines).',
  );
  t.equal(readFileSync(at('a/b/c.txt'), 'utf8'), 'one\ntwo\n');
  t.equal(
    await resultText(write, { file_path: 'a/b/c.txt', contents: 'é' }, workspace),
    'Overwrote a/b/c.txt (2 bytes, 1 line; before: 8 bytes).',
  );
  t.equal(readFileSync(at('a/b/c.txt'), 'utf8'), 'é');
  t.equal(
    await resultText(write, { path: 'a/b/c.txt', content: '' }, workspace),
    'Overwrote a/b/c.txt (0 bytes, 0 lines; before: 2 bytes).',
  );
  t.strictSame(readdirSync(at('a/b')), ['c.txt'], 'nothing else is left');
});

t.test('permissions: 0666 less the umask for a new file, kept for an old one', onPosix, async (t) => {
  const { workspace, at, put } = places(t);
  await resultText(write, { path: 'new', content: '' }, workspace);
  t.equal(statSync(at('new')).mode & 0o777, 0o666 & ~process.umask());
  for (const mode of [0o755, 0o600, 0o666]) {
    put('old', 'x');
    chmodSync(at('old'), mode);
    await resultText(write, { path: 'old', content: 'y' }, workspace);
    t.equal(statSync(at('old')).mode & 0o777, mode);
  }
});

t.test(
  'a file that is a mount of its own is written in place',
  { skip: process.platform !== 'linux' && 'bind mounts are those of Linux' },
  async (t) => {
    const { at, put } = places(t);
    put('source.txt', 'before, and longer than after');
    for (const name of ['mounted.txt', 'settings.json', 'state.json']) put(name, '');
    for (const name of ['settings', 'state']) put(`${name}.source`, 'before');
    const write = `
      import { replaceFile } from ${JSON.stringify(new URL('../../../src/agent/tools/files/replace-file.ts', import.meta.url).href)};
      import { writeFileAtomic, writeFileAtomicAsync } from ${JSON.stringify(new URL('../../../src/lib/index.ts', import.meta.url).href)};
      const { signal } = new AbortController();
      await replaceFile(${JSON.stringify(at('mounted.txt'))}, Buffer.from('after'), { signal });
      writeFileAtomic(${JSON.stringify(at('settings.json'))}, '{}');
      await writeFileAtomicAsync(${JSON.stringify(at('state.json'))}, '[]');
    `;
    const node = [process.execPath, '--conditions=development', '--disable-warning=ExperimentalWarning'];
    const mounts = [
      ['source.txt', 'mounted.txt'],
      ['settings.source', 'settings.json'],
      ['state.source', 'state.json'],
    ].map((pair) => `mount --bind ${pair.join(' ')}`);
    const script = `${mounts.join(' && ')} && exec "$@"`;
    execFileSync('unshare', ['-rm', 'sh', '-c', script, 'sh', ...node, '--input-type=module', '-e', write], {
      cwd: dirname(at('source.txt')),
    });
    t.equal(readFileSync(at('source.txt'), 'utf8'), 'after');
    t.equal(readFileSync(at('mounted.txt'), 'utf8'), '', 'the file below the mount is untouched');
    t.equal(readFileSync(at('settings.source'), 'utf8'), '{}');
    t.equal(readFileSync(at('state.source'), 'utf8'), '[]');
    t.notMatch(readdirSync(dirname(at('source.txt'))).join(' '), '.tmp', 'nothing else is left');
  },
);

t.test(
  'the owner is preserved where we may give files away',
  { skip: process.getuid?.() !== 0 && 'only root may' },
  async (t) => {
    const { workspace, at, put } = places(t);
    put('f', 'x');
    execFileSync('chown', ['1234:1234', at('f')]);
    await resultText(write, { path: 'f', content: 'y' }, workspace);
    t.match(statSync(at('f')), { uid: 1234, gid: 1234 });
  },
);

t.test('it always needs approval', onPosix, async (t) => {
  const { workspace, outside, at } = places(t);
  symlinkSync(join(outside, 'new'), at('dangling'));
  const inside = await review(write, { path: 'x/y', content: '' }, workspace);
  const { preview, ...asked } = inside.need ?? {};
  t.type(preview, 'function', 'it can show the change');
  t.strictSame(asked, {
    kind: 'file',
    operation: 'write',
    target: at('x/y'),
    scopeKey: `file:write:${at('x/y')}`,
    covers: `writing and editing the file ${at('x/y')}`,
  });
  const far = await review(write, { path: 'dangling', content: 'z' }, workspace);
  t.match(far.need, { target: join(outside, 'new'), reason: /outside/ });
  t.equal(readFileSync(join(outside, 'new'), 'utf8'), 'z', 'what was approved is done');
});

t.test('only the approved file is written', onPosix, async (t) => {
  const { workspace, outside, at } = places(t, { 'd/f': 'near', 'e/f': 'also near' });
  const context = contextOf({ workspacePath: workspace });
  const approved = async (path: string) => {
    const parsed = write.parse({ path, content: 'new' });
    if (!parsed.ok) throw new Error(parsed.error);
    await write.approvalFor(parsed.args, context);
    return parsed.args;
  };
  for (const target of [outside, 'e']) {
    const args = await approved('d/f');
    renameSync(at('d'), at('away'));
    symlinkSync(target, at('d'));
    t.match(await write.run(args, context), { isError: true, text: /now leads elsewhere/ }, target);
    rmSync(at('d'));
    renameSync(at('away'), at('d'));
  }
  t.match(await write.run({ path: join(outside, 'f'), content: 'x' }, context), {
    isError: true,
    text: /was not approved/,
  });
  t.strictSame(readdirSync(outside), []);
  t.equal(readFileSync(at('e/f'), 'utf8'), 'also near');
});

t.test('a symlink inside the workspace stays, its target is written', onPosix, async (t) => {
  const { workspace, at } = places(t, { real: 'x' });
  symlinkSync('real', at('link'));
  await resultText(write, { path: 'link', content: 'y' }, workspace);
  t.equal(readFileSync(at('real'), 'utf8'), 'y');
  t.equal(readFileSync(at('link'), 'utf8'), 'y');
});

t.test('another hard link keeps the old content', onPosix, async (t) => {
  const { workspace, outside, at } = places(t, { f: 'old' });
  linkSync(at('f'), join(outside, 'f'));
  await resultText(write, { path: 'f', content: 'new' }, workspace);
  t.equal(readFileSync(join(outside, 'f'), 'utf8'), 'old');
});

t.test('a write that cannot be done names the reason and changes nothing', onPosix, async (t) => {
  const { workspace, at } = places(t, { 'dir/f': 'x', file: 'x' });
  execFileSync('mkfifo', [at('fifo')]);
  for (const [args, text] of [
    [{ path: 'dir', content: '' }, /it is a directory/],
    [{ path: 'new/', content: '' }, /names a directory/],
    [{ path: '.', content: '' }, /directory/],
    [{ path: 'file/child', content: '' }, /a part of the path is a file/],
    [{ path: 'fifo', content: '' }, /a FIFO/],
    [{ path: '/dev/null', content: '' }, /refused/],
    [{ path: 'big', content: 'é'.repeat(524_289) }, /The content has 1\.0 MB; at most 1\.0 MB are written/],
    [{ path: `${'n'.repeat(300)}`, content: '' }, /too long/],
    [{ path: '.oratorio/config.json', content: '{}' }, /refused/],
    [{ path: '.oratorio/sub/x', content: '{}' }, /refused/],
  ] as const) {
    t.match((await review(write, args, workspace)).result, { isError: true, text }, args.path.slice(0, 20));
  }
  t.strictSame(readdirSync(workspace).sort(), ['.oratorio', 'dir', 'fifo', 'file']);
  t.match(readFileSync(at('.oratorio/config.json'), 'utf8'), /sk-own/);
});

t.test(
  'a read-only file is not replaced',
  { skip: process.getuid?.() === 0 && 'root may write everything' },
  async (t) => {
    const { workspace, at } = places(t, { f: 'x' });
    chmodSync(at('f'), 0o444);
    t.match(await resultText(write, { path: 'f', content: 'y' }, workspace), /read-only/);
  },
);

t.test('a write that fails takes its directories and its temporary file back', onPosix, async (t) => {
  const { workspace, at } = places(t);
  const late = new AbortController();
  const failing = Object.assign(late.signal, {
    throwIfAborted: () => {
      if (existsSync(at('a/b')) && readdirSync(at('a/b')).length > 0) throw new Error('interrupted');
    },
  });
  await t.rejects(review(write, { path: 'a/b/c', content: 'x' }, workspace, { signal: failing }), {
    message: 'interrupted',
  });
  t.strictSame(readdirSync(workspace), ['.oratorio']);
});

t.test('a path that was exchanged after its check is not written', onPosix, async (t) => {
  const { outside, at } = places(t, { 'd/f': 'near' });
  renameSync(at('d'), at('away'));
  symlinkSync(outside, at('d'));
  await t.rejects(replaceFile(at('d/f'), Buffer.from('x'), { workspacePath: at('.'), signal }), { code: 'moved' });
  await t.rejects(replaceFile(at('d/new/deep'), Buffer.from('x'), { workspacePath: at('.'), signal }), {
    code: 'moved',
  });
  t.strictSame(readdirSync(outside), []);
});

t.test('no tool makes the root of a workspace that was moved, deleted or replaced', onPosix, async (t) => {
  const { workspace, at, put } = places(t);
  const pinned = new PinnedDirectory(workspace);
  t.teardown(() => pinned.close());
  const rules = { ...settings(), workspace: pinned };
  const tools = { write: createWriteFile(rules), edit: createEditFile(rules), read: createReadFile(rules) };
  const answer = async (...call: Parameters<typeof review>) => (await review(...call)).result.text;
  const all = async () => {
    const content = 'x';
    return [
      await answer(tools.write, { path: 'n.txt', content }, workspace),
      await answer(tools.write, { path: 'deep/er/n.txt', content }, workspace),
      await answer(tools.write, { path: at('n.txt'), content }, workspace),
      await answer(tools.edit, { path: 'old', oldText: 'old', newText: 'new' }, workspace),
      await answer(tools.read, { path: 'old' }, workspace),
    ];
  };
  put('old', 'old');
  renameSync(workspace, `${workspace}-away`);
  t.teardown(() => rmSync(`${workspace}-away`, { recursive: true, force: true }));
  for (const text of await all()) t.match(text, /was moved or deleted .* oratorio up/);
  t.notOk(existsSync(workspace));
  await t.rejects(replaceFile(at('deep/n'), Buffer.from('x'), { workspacePath: workspace, signal }), {
    code: 'ENOENT',
  });
  t.notOk(existsSync(workspace), 'also when it was moved after the check');

  mkdirSync(workspace);
  put('old', 'old');
  for (const text of await all()) t.match(text, /was replaced by another directory .* oratorio restart/);
  t.strictSame(readdirSync(workspace), ['old']);
  rmSync(workspace, { recursive: true });
  mkdirSync(workspace);
  t.match(
    await answer(tools.write, { path: 'n.txt', content: 'x' }, workspace),
    /was replaced/,
    'a used inode is not taken again',
  );

  rmSync(workspace, { recursive: true });
  renameSync(`${workspace}-away`, workspace);
  t.match(
    await answer(tools.write, { path: 'deep/er/n.txt', content: 'x' }, workspace),
    /^Created/,
    'positive control',
  );

  const fork = `${workspace}-fork`;
  t.match(
    await answer(tools.write, { path: 'n.txt', content: 'x' }, fork),
    /of this conversation was moved or deleted/,
  );
  t.notOk(existsSync(fork), 'the directory of a fork is not made either');
});

t.test(
  'an open directory stays the same after a swap of its path',
  { skip: process.platform !== 'linux' && 'only Linux can hold it' },
  async (t) => {
    const { outside, at } = places(t, { 'd/f': 'near' });
    const directory = await openDirectory(at('d'));
    renameSync(at('d'), at('away'));
    symlinkSync(outside, at('d'));
    writeFileSync(directory.at('g'), 'x');
    await directory.close();
    t.strictSame(readdirSync(outside), []);
    t.strictSame(readdirSync(at('away')), ['f', 'g']);
  },
);

t.test('a read during a write sees the old content or the new one', async (t) => {
  const { workspace, at } = places(t, { f: 'a'.repeat(100_000) });
  const read = createReadFile(settings());
  const seen = new Set<string>();
  const writing = (async () => {
    for (let n = 0; n < 30; n += 1)
      await resultText(write, { path: 'f', content: 'ab'[n % 2]?.repeat(100_000) }, workspace);
  })();
  let isOver = false;
  void writing.then(() => {
    isOver = true;
  });
  while (!isOver) {
    const content = readFileSync(at('f'), 'utf8');
    seen.add(`${content.length} ${[...new Set(content)].join('')}`);
    t.match(await resultText(read, { path: 'f' }, workspace), /^[ab]+… \[98000 more characters\]/);
  }
  await writing;
  for (const each of seen) t.match(each, /^100000 [ab]$/);
});

t.test('writes of one file at once happen one after the other', async (t) => {
  const { workspace, at } = places(t);
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, n) => resultText(write, { path: 'new/f', content: String(n) }, workspace)),
  );
  t.equal(answers.filter((answer) => answer.startsWith('Created')).length, 1);
  t.match(readFileSync(at('new/f'), 'utf8'), /^1?\d$/);
  t.strictSame(readdirSync(at('new')), ['f']);
});

t.test('a directory that turns into a symlink and back all the time: never a byte outside', onPosix, async (t) => {
  const { workspace, outside, at } = places(t, { 'd/f': 'near' });
  writeFileSync(join(outside, 'f'), 'SECRET');
  const read = createReadFile(settings());
  const d = JSON.stringify(at('d'));
  const stop = await adversary(
    t,
    `fs.renameSync(${d}, ${d} + '.away'); fs.symlinkSync(${JSON.stringify(outside)}, ${d}); fs.unlinkSync(${d}); fs.renameSync(${d} + '.away', ${d});`,
    // A directory was made in the moment when it was missing.
    `fs.rmSync(${d}, { recursive: true, force: true }); fs.renameSync(${d} + '.away', ${d});`,
  );
  const isApproved = (target: string | undefined) => target === undefined || target.startsWith(`${workspace}/`);
  for (let n = 0; n < 250; n += 1) {
    const tool = n % 2 === 0 ? write : read;
    const parsed = tool.parse({ path: n % 4 === 0 ? 'd/f' : 'd/sub/g', content: `round ${n}` });
    if (!parsed.ok) throw new Error(parsed.error);
    const context = contextOf({ workspacePath: workspace });
    const need = await tool.approvalFor(parsed.args, context);
    if (!isApproved(need?.target)) continue;
    const { text } = await tool.run(parsed.args, context);
    if (/SECRET/.test(text)) t.fail(`round ${n}: read outside`);
  }
  t.ok((await stop()) > 0, 'the other side was at work');
  // Where directories cannot be held, an empty file or directory may be left: never a byte.
  const left = readdirSync(outside).filter(
    (name) => process.platform === 'linux' || statSync(join(outside, name)).size > 0,
  );
  t.strictSame(left, ['f']);
  t.equal(readFileSync(join(outside, 'f'), 'utf8'), 'SECRET');
  t.match(
    await resultText(write, { path: 'd/f', content: 'x' }, workspace),
    /^(Overwrote|Created)/,
    'and afterwards all is well',
  );
});

t.test('a file that turns into a symlink and back all the time: never a byte outside', onPosix, async (t) => {
  const { workspace, outside, at } = places(t, { f: 'near' });
  writeFileSync(join(outside, 'o'), 'SECRET');
  mkdirSync(at('spare'));
  const [f, link, file] = [at('f'), at('spare/link'), at('spare/file')].map((path) => JSON.stringify(path));
  const stop = await adversary(
    t,
    `fs.symlinkSync(${JSON.stringify(join(outside, 'o'))}, ${link}); fs.renameSync(${link}, ${f}); fs.writeFileSync(${file}, 'near'); fs.renameSync(${file}, ${f});`,
  );
  const read = createReadFile(settings());
  for (let n = 0; n < 250; n += 1) {
    const tool = n % 2 === 0 ? write : read;
    const parsed = tool.parse({ path: 'f', content: `round ${n}` });
    if (!parsed.ok) throw new Error(parsed.error);
    const context = contextOf({ workspacePath: workspace });
    const need = await tool.approvalFor(parsed.args, context);
    if (need && need.target !== at('f')) continue;
    const { text } = await tool.run(parsed.args, context);
    if (/SECRET/.test(text)) t.fail(`round ${n}: read outside`);
  }
  t.ok((await stop()) > 0, 'the other side was at work');
  t.equal(readFileSync(join(outside, 'o'), 'utf8'), 'SECRET');
  t.match(await resultText(write, { path: 'f', content: 'x' }, workspace), /^Overwrote/, 'and afterwards all is well');
});
