import { linkSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { IgnoreRules } from '../../../src/agent/tools/files/gitignore.ts';
import { createFindFiles, createReadFile } from '../../../src/agent/tools/files/index.ts';
import { createRipgrepEngine } from '../../../src/agent/tools/files/ripgrep.ts';
import { createScriptEngine } from '../../../src/agent/tools/files/script-engine.ts';
import type { SearchEngine } from '../../../src/agent/tools/files/search.ts';
import { createSearchEngine } from '../../../src/agent/tools/files/search-engine.ts';
import { searchTest } from '../../../src/agent/tools/files/search-patterns.ts';
import { places, resultText, review, settings } from './file-tools.ts';

const onPosix = { skip: process.platform === 'win32' && 'symlinks and their like are those of POSIX' };
const engines: Readonly<Record<string, SearchEngine>> = {
  ripgrep: createRipgrepEngine(),
  'our own code': createScriptEngine(),
};

for (const [name, engine] of Object.entries(engines)) {
  const find = createFindFiles(settings(), engine);

  t.test(
    `${name}: a name with a line break is one entry, and a name that is not UTF-8 is counted`,
    onPosix,
    async (t) => {
      const { workspace } = places(t, { 'one\ntwo.txt': '', 'plain.txt': '' });
      const found = (await resultText(find, { pattern: '*.txt' }, workspace)).split('\n').sort();
      t.strictSame(found, ['"one\\ntwo.txt"', 'plain.txt']);
      writeFileSync(Buffer.concat([Buffer.from(`${workspace}/gr`), Buffer.from([0xfc]), Buffer.from('n.txt')]), '');
      const counted = await resultText(find, { pattern: '*.txt' }, workspace);
      t.match(counted, /\[1 name not in UTF-8 left out; use Exec for such a file\.\]$/);
      const listed = await resultText(createReadFile(settings()), { path: '.' }, workspace);
      t.match(listed, /\n"one\\ntwo\.txt"\n[\s\S]*\ngr\ufffdn\.txt\nplain\.txt$/, 'a listing quotes it, too');
    },
  );

  t.test(`${name}: files by glob, the most recently changed first`, async (t) => {
    const files = ['old.ts', 'src/new.ts', 'src/deep/middle.ts', 'x.js', 'src/README'];
    const { workspace, at } = places(t, Object.fromEntries(files.map((file) => [file, ''])));
    utimesSync(at('old.ts'), 1_000, 1_000);
    utimesSync(at('src/deep/middle.ts'), 2_000, 2_000);
    utimesSync(at('src/new.ts'), 3_000, 3_000);
    utimesSync(at('x.js'), 500, 500);
    t.equal(await resultText(find, { pattern: '*.ts' }, workspace), 'src/new.ts\nsrc/deep/middle.ts\nold.ts');
    t.equal(await resultText(find, { pattern: '*.js;old.*' }, workspace), 'old.ts\nx.js');
    t.equal(await resultText(find, { pattern: 'src/*.ts' }, workspace), 'src/new.ts');
    t.equal(await resultText(find, { pattern: '**/*.ts', path: 'src' }, workspace), 'src/new.ts\nsrc/deep/middle.ts');
    t.equal(
      await resultText(find, { glob: `${workspace}/src/**/m*.ts` }, workspace),
      'src/deep/middle.ts',
      'absolute patterns too',
    );
    t.equal(await resultText(find, { pattern: 'README' }, workspace), 'src/README');
    t.equal(await resultText(find, { pattern: '*.none' }, workspace), 'No files match *.none in .');
  });

  t.test(`${name}: at most 200 are shown, and how many there are is said`, async (t) => {
    const { workspace } = places(t, Object.fromEntries(Array.from({ length: 205 }, (_, n) => [`d/f${n}.txt`, ''])));
    const text = await resultText(find, { pattern: '*.txt' }, workspace);
    t.equal(text.match(/^d\/f\d+\.txt$/gm)?.length, 200);
    t.match(text, /\n\n\[Showing the newest 200 of 205 files; narrow pattern or path\.\]$/);
  });

  t.test(`${name}: ignored, blocked and own files and symlinks are not listed`, onPosix, async (t) => {
    const { workspace, outside, at } = places(t, {
      '.gitignore': 'dist\n',
      'a.ts': '',
      'dist/a.ts': '',
      'node_modules/x/a.ts': '',
      '.git/a.ts': '',
      '.oratorio/a.ts': '',
      'nested/.oratorio/a.ts': '',
      'blocked/a.ts': '',
      'single/a.ts': '',
      '.github/a.ts': '',
    });
    writeFileSync(join(outside, 'a.ts'), '');
    symlinkSync(outside, at('link'));
    symlinkSync('a.ts', at('b.ts'));
    linkSync(at('single/a.ts'), at('same.ts'));
    const guarded = createFindFiles(settings({ blockedPaths: ['blocked', 'single/a.ts'] }), engine);
    const found = await resultText(guarded, { pattern: '*.ts' }, workspace);
    t.strictSame(found.split('\n').sort(), ['.github/a.ts', 'a.ts']);
    t.match(await resultText(guarded, { pattern: '*', path: 'blocked' }, workspace), /refused/);
    t.match(await resultText(guarded, { pattern: '*', path: '.oratorio' }, workspace), /refused/);
  });

  t.test(`${name}: rules of a .gitignore above the searched directory hold`, async (t) => {
    const { workspace } = places(t, {
      '.git/HEAD': '',
      '.gitignore': 'a/ignored.ts\n*.log\n',
      'a/ignored.ts': '',
      'a/b.ts': '',
      'a/c.log': '',
    });
    t.equal(await resultText(find, { pattern: '*', path: 'a' }, workspace), 'a/b.ts');
  });

  t.test(`${name}: a wrong argument is named, and a path outside needs approval`, async (t) => {
    const { workspace, outside } = places(t, { f: '' });
    writeFileSync(join(outside, 'o.ts'), '');
    t.match((await review(find, { pattern: '*', path: 'f' }, workspace)).result, {
      isError: true,
      text: /f is a file; path must be a directory/,
    });
    t.match(await resultText(find, { pattern: '../*.ts' }, workspace), /pattern must not contain '\.\.'/);
    t.match(await resultText(find, { pattern: ' ; ' }, workspace), /pattern is empty/);
    t.match(await resultText(find, { pattern: '*', path: 'none' }, workspace), /no such file or directory/);
    const far = await review(find, { pattern: '*.ts', path: outside }, workspace);
    t.match(far.need, { operation: 'search', target: outside, scopeKey: `find:${outside}` });
    t.equal(far.result.text, join(outside, 'o.ts'));
    await t.rejects(review(find, { pattern: '*' }, workspace, { signal: AbortSignal.abort(new Error('over')) }), {
      message: 'over',
    });
  });
}

t.test('where ripgrep is missing, our own code finds', async (t) => {
  const { workspace, base } = places(t, { 'f.ts': '' });
  const find = createFindFiles(settings(), createSearchEngine(createRipgrepEngine(async () => join(base, 'none'))));
  t.equal(await resultText(find, { pattern: '*.ts' }, workspace), 'f.ts');
});

t.test('a pattern matches a name at any depth, and with a slash a path', async (t) => {
  for (const [glob, yes, no] of [
    ['*.ts', ['a.ts', 'x/y/a.ts', '.ts'], ['a.tsx', 'a.ts/b']],
    ['/*.ts', ['a.ts'], ['x/a.ts']],
    ['./a/*', ['a/b'], ['a/b/c', 'x/a/b']],
    ['**', ['a', 'a/b'], []],
    ['**/a', ['a', 'x/a', 'x/y/a'], ['a/b', 'xa']],
    ['a/**', ['a/b', 'a/b/c'], ['a', 'b/a/c']],
    ['a/', ['a/b'], ['a']],
    ['a/**/b', ['a/b', 'a/x/b', 'a/x/y/b'], ['a/xb', 'b']],
    ['a**b', ['ab', 'axb'], ['a/b']],
    ['?.ts', ['a.ts'], ['ab.ts', '.ts']],
    ['[a-c]1', ['a1', 'x/c1'], ['d1', 'A1']],
    ['[!a]', ['b'], ['a']],
    ['[]]', [']'], ['[']],
    ['[', ['['], ['a']],
    ['{a,b{c,d}}.ts', ['a.ts', 'bc.ts', 'bd.ts'], ['b.ts', 'c.ts']],
    ['{src,test}/**/*.ts', ['src/a.ts', 'test/x/a.ts'], ['lib/a.ts']],
    ['{a', ['{a'], ['a']],
    ['a;b', ['a', 'b'], ['a;b']],
    ['\\*', ['*'], ['a']],
    ['{a}', ['{a}'], ['a']],
  ] as const) {
    const test = searchTest(glob);
    for (const path of yes) t.equal(test(path), true, `${glob} matches ${path}`);
    for (const path of no) t.equal(test(path), false, `${glob} does not match ${path}`);
  }
});

t.test('a pattern with too many alternatives is refused', async (t) => {
  for (const pattern of ['{a,b}'.repeat(9), '{a,'.repeat(300) + '}'.repeat(300)])
    t.throws(() => searchTest(pattern), { name: 'GlobError', message: 'has too many alternatives in braces' });
});

t.test('.gitignore: the last rule that says something decides', async (t) => {
  const rules = new IgnoreRules(
    '# comment\n\n*.log\n!keep.log\n/root\ndir/\na/b\n**/deep\ntrailing  \n\\#odd\n\\!bang\nx/**/y\r\n',
  );
  for (const [path, isDirectory, expected] of [
    ['a.log', false, true],
    ['x/a.log', false, true],
    ['x/keep.log', false, false],
    ['root', false, true],
    ['x/root', false, undefined],
    ['dir', true, true],
    ['dir', false, undefined],
    ['x/dir', true, true],
    ['a/b', false, true],
    ['x/a/b', false, undefined],
    ['x/y/deep', false, true],
    ['trailing', false, true],
    ['#odd', false, true],
    ['!bang', false, true],
    ['x/y', false, true],
    ['x/1/2/y', false, true],
    ['# comment', false, undefined],
  ] as const) {
    t.equal(rules.isIgnored(path, isDirectory), expected, path);
  }
});
