import {
  chmodSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { createGrepFiles } from '../../../src/agent/tools/files/index.ts';
import { createRipgrepEngine, findRipgrep } from '../../../src/agent/tools/files/ripgrep.ts';
import { createScriptEngine } from '../../../src/agent/tools/files/script-engine.ts';
import type { SearchEngine } from '../../../src/agent/tools/files/search.ts';
import { createSearchEngine } from '../../../src/agent/tools/files/search-engine.ts';
import { adversary, places, resultText, review, settings } from './file-tools.ts';
import { problemOf } from './run-tool.ts';

const onPosix = { skip: process.platform === 'win32' && 'symlinks and their like are those of POSIX' };
const engines: Readonly<Record<string, SearchEngine>> = {
  ripgrep: createRipgrepEngine(),
  'our own code': createScriptEngine(),
};

for (const [name, engine] of Object.entries(engines)) {
  const grep = createGrepFiles(settings(), engine);

  t.test(`${name}: matching lines by file, with their numbers`, async (t) => {
    const { workspace } = places(t, {
      'b.ts': 'foo\nbar\nfoo bar\n',
      'a/x.ts': 'no\nfoo',
      'a/crlf.txt': 'x\r\nfoo\r\n',
      'c.md': 'nothing',
    });
    t.equal(
      await resultText(grep, { pattern: 'foo' }, workspace),
      'a/crlf.txt\n  2: foo\n\na/x.ts\n  2: foo\n\nb.ts\n  1: foo\n  3: foo bar\n\n[4 matching lines in 3 files.]',
    );
    t.equal(
      await resultText(grep, { regex: '^foo$', path: 'a' }, workspace),
      'a/crlf.txt\n  2: foo\n\na/x.ts\n  2: foo\n\n[2 matching lines in 2 files.]',
    );
    t.equal(await resultText(grep, { pattern: 'FOO', path: 'b.ts' }, workspace), 'No matches for FOO');
    t.equal(
      await resultText(grep, { pattern: 'FOO B', ignoreCase: true, path: 'b.ts' }, workspace),
      'b.ts\n  3: foo bar\n\n[1 matching line in 1 file.]',
    );
    t.equal(
      await resultText(grep, { pattern: '(?i)NOTHING' }, workspace),
      'c.md\n  1: nothing\n\n[1 matching line in 1 file.]',
    );
    t.equal(await resultText(grep, { pattern: '\\d+' }, workspace), 'No matches for \\d+');
  });

  t.test(`${name}: include chooses files and does not bring ignored ones back`, async (t) => {
    const { workspace } = places(t, {
      '.gitignore': 'dist/\n*.log\n!keep.log\n/only-here.txt\n',
      'src/a.ts': 'foo',
      'src/b.js': 'foo',
      'src/deep/c.ts': 'foo',
      'src/deep/.gitignore': 'd.ts\n',
      'src/deep/d.ts': 'foo',
      'dist/e.ts': 'foo',
      'f.log': 'foo',
      'keep.log': 'foo',
      'only-here.txt': 'foo',
      'src/only-here.txt': 'foo',
      'node_modules/m/g.ts': 'foo',
      '.git/h.ts': 'foo',
      '.hidden/i.ts': 'foo',
    });
    const files = async (include?: string, path?: string) =>
      [...(await resultText(grep, { pattern: 'foo', include, path }, workspace)).matchAll(/^(\S+)$/gm)]
        .map(([line]) => line)
        .sort();
    t.strictSame(await files(), [
      '.hidden/i.ts',
      'keep.log',
      'src/a.ts',
      'src/b.js',
      'src/deep/c.ts',
      'src/only-here.txt',
    ]);
    t.strictSame(await files('*.ts'), ['.hidden/i.ts', 'src/a.ts', 'src/deep/c.ts']);
    t.strictSame(await files('src/*.{ts,js}'), ['src/a.ts', 'src/b.js']);
    t.strictSame(await files('src/**/*.ts'), ['src/a.ts', 'src/deep/c.ts']);
    t.strictSame(await files('*.log; *.js'), ['keep.log', 'src/b.js']);
    t.strictSame(await files('**/deep/**'), ['src/deep/c.ts']);
    t.strictSame(await files('[ab].?s'), ['src/a.ts', 'src/b.js']);
    t.strictSame(await files('*.ts', 'src/deep'), ['src/deep/c.ts']);
    t.strictSame(await files(undefined, 'f.log'), ['f.log'], 'a file that is named is searched');
    t.strictSame(await files(undefined, 'node_modules'), ['node_modules/m/g.ts'], 'and so is a directory');
  });

  t.test(`${name}: lines around matches are shown and marked, groups apart from each other`, async (t) => {
    const { workspace } = places(t, {
      'a.txt': 'one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\r\nnine\n',
      'b.txt': 'one',
    });
    t.equal(
      await resultText(grep, { pattern: 'two|seven', context: 1 }, workspace),
      'a.txt\n  1- one\n  2: two\n  3- three\n  --\n  6- six\n  7: seven\n  8- eight\n\n[2 matching lines in 1 file.]',
    );
    t.equal(
      await resultText(grep, { pattern: 'one|three', context: '2', path: 'a.txt' }, workspace),
      'a.txt\n  1: one\n  2- two\n  3: three\n  4- four\n  5- five\n\n[2 matching lines in 1 file.]',
    );
    t.equal(
      await resultText(grep, { pattern: 'o', context: 1, maxResults: 1, path: 'a.txt' }, workspace),
      'a.txt\n  1: one\n\n[Showing 1 matching line, there are more: narrow pattern, path or include.]',
    );
    t.match(problemOf(grep, { pattern: 'o', context: -1 }), /context must be at least 0/);
  });

  t.test(`${name}: with multiline a match may reach over line ends, also those of Windows`, async (t) => {
    const { workspace } = places(t, {
      'a.ts': 'call(\n  1,\n  2,\n);\ncall(3);\n',
      'w.ts': 'call(\r\n  1);\r\nend\r\n',
    });
    t.equal(
      await resultText(grep, { pattern: 'call\\(\\s+1', path: 'a.ts' }, workspace),
      'No matches for call\\(\\s+1',
    );
    t.equal(
      await resultText(grep, { pattern: 'call\\(\\s+1', multiline: true }, workspace),
      'a.ts\n  1: call(\n  2:   1,\n\nw.ts\n  1: call(\n  2:   1);\n\n[2 matching lines in 2 files.]',
    );
    t.equal(
      await resultText(grep, { pattern: '2,\\n\\);$', multiline: true, context: 1, path: 'a.ts' }, workspace),
      'a.ts\n  2-   1,\n  3:   2,\n  4: );\n  5- call(3);\n\n[1 matching line in 1 file.]',
    );
    t.equal(
      await resultText(grep, { pattern: '^call', multiline: true, path: 'a.ts' }, workspace),
      'a.ts\n  1: call(\n  5: call(3);\n\n[2 matching lines in 1 file.]',
    );
  });

  t.test(`${name}: limits are said`, async (t) => {
    const { workspace } = places(t, {
      'many.txt': 'foo\n'.repeat(150),
      'long.txt': `${'x'.repeat(600)} needle ${'y'.repeat(2_000)}\n`,
      'short.txt': `needle ${'y'.repeat(2_000)}\n`,
    });
    const text = await resultText(grep, { pattern: 'foo' }, workspace);
    t.equal(text.match(/: foo$/gm)?.length, 100);
    t.match(text, /\[Showing 100 matching lines, there are more: narrow pattern, path or include\.\]$/);
    t.match(
      await resultText(grep, { pattern: 'foo', maxResults: '2' }, workspace),
      /1: foo\n {2}2: foo\n\n\[Showing 2 matching/,
    );
    t.match(
      await resultText(grep, { pattern: 'foo', maxResults: 150 }, workspace),
      /\[150 matching lines in 1 file\.\]$/,
    );
    t.equal(
      await resultText(grep, { pattern: 'needle', path: 'long.txt' }, workspace),
      `long.txt\n  1: [501 characters] …${'x'.repeat(99)} needle ${'y'.repeat(393)}… [1607 more characters]\n\n[1 matching line in 1 file.]`,
    );
    t.match(
      await resultText(grep, { pattern: 'needle', path: 'short.txt' }, workspace),
      /1: needle y{493}… \[1507 more characters\]/,
    );
    t.match(problemOf(grep, { pattern: 'x', maxResults: 501 }), /a whole number from 1 to 500/);
    t.match(problemOf(grep, { pattern: 'x'.repeat(2_001) }), /at most 2000 characters/);
    t.match(problemOf(grep, { pattern: '' }), /a regular expression/);
  });

  t.test(`${name}: all matches together are at most 50 KB`, async (t) => {
    const { workspace } = places(t, { f: `${'é'.repeat(400)}\n`.repeat(300) });
    const text = await resultText(grep, { pattern: 'é', maxResults: 300 }, workspace);
    t.ok(Buffer.byteLength(text) < 52_000);
    t.match(text, /\[Showing \d+ matching lines, there are more/);
  });

  t.test(`${name}: binary files are skipped, other encodings read, large files left out`, async (t) => {
    const { workspace } = places(t, {
      'bin.dat': Buffer.from('foo\0foo\n'),
      'image.png': Buffer.from('\x89PNG\r\n\x1a\n\0foo', 'latin1'),
      'u16.txt': Buffer.from('\uFEFFzwölf foo\r\n', 'utf16le'),
      'bom.txt': '\uFEFFfoo first\n',
      'latin1.txt': Buffer.from('gr\xfcn foo\n', 'latin1'),
      'large.txt': `foo\n${'x'.repeat(1_048_576)}`,
    });
    t.equal(
      await resultText(grep, { pattern: '^zw.lf foo|^foo first|foo$' }, workspace),
      'bom.txt\n  1: foo first\n\nlatin1.txt\n  1: gr\uFFFDn foo\n\nu16.txt\n  1: zwölf foo\n\n[3 matching lines in 3 files.]',
    );
  });

  t.test(`${name}: the error names the problem of a pattern`, async (t) => {
    const { workspace } = places(t, { f: 'foo' });
    for (const pattern of ['(foo', '[z-a]', '*']) {
      t.match((await review(grep, { pattern }, workspace)).result, { isError: true, text: /^Error: .{10,}/s }, pattern);
    }
    t.match(await resultText(grep, { pattern: 'x', include: '../*.ts' }, workspace), /include must not contain '\.\.'/);
    t.match(await resultText(grep, { pattern: 'x', include: '{a,b}'.repeat(20) }, workspace), /too many alternatives/);
    t.match(await resultText(grep, { pattern: 'x', path: 'none' }, workspace), /none: there is no such file/);
    t.equal(
      await resultText(grep, { pattern: '--files' }, workspace),
      'No matches for --files',
      'a pattern is no option',
    );
  });

  t.test(`${name}: symlinks are not followed, and own and blocked files are not searched`, onPosix, async (t) => {
    const { workspace, outside, put, at } = places(t, {
      'd/f': 'foo in',
      '.env': 'foo blocked',
      'keys/[k]': 'foo blocked',
    });
    writeFileSync(join(outside, 'o'), 'foo outside');
    put('.oratorio/state.db', 'foo ours');
    put('sub/.oratorio/lock', 'foo ours');
    put('home/hub.lock', 'foo ours');
    symlinkSync(outside, at('link'));
    symlinkSync(join(outside, 'o'), at('file-link'));
    linkSync(at('.env'), at('same'));
    const rules = { blockedPaths: ['.env', 'keys'], protectedDirectories: [at('home')] };
    const guarded = createGrepFiles(settings(rules), engine);
    const found = await resultText(guarded, { pattern: 'foo' }, workspace);
    t.match(found, /^d\/f\n {2}1: foo in\n\n\[/);
    t.notMatch(found, /outside|ours|blocked/);
    for (const path of ['.oratorio', '.oratorio/state.db', 'home', 'keys', '.env', 'same']) {
      const { need, result } = await review(guarded, { pattern: 'foo', path }, workspace);
      t.equal(need, undefined, path);
      t.match(result, { isError: true, text: /^Error: refused/ });
    }
    const single = createGrepFiles(settings({ blockedPaths: ['keys/[k]'] }), engine);
    t.notMatch(
      await resultText(single, { pattern: 'foo', path: 'keys' }, workspace),
      /blocked/,
      'a name that looks like a glob',
    );
  });

  t.test(`${name}: outside the workspace it needs approval`, onPosix, async (t) => {
    const { workspace, outside, at } = places(t, { f: 'foo' });
    writeFileSync(join(outside, 'o'), 'foo');
    symlinkSync(outside, at('link'));
    t.equal((await review(grep, { pattern: 'foo' }, workspace)).need, undefined);
    for (const path of [outside, '../outside', 'link', 'link/o']) {
      const { need, result } = await review(grep, { pattern: 'foo', path }, workspace);
      const scopeKey = path === 'link/o' ? `grep:${outside}/o` : `grep-recursive:${outside}`;
      t.match(need, { kind: 'file', operation: 'search', scopeKey }, path);
      t.match(result.text, `${join(outside, 'o')}\n  1: foo`);
    }
    const above = await review(grep, { pattern: 'sk-own', path: '..' }, workspace);
    t.equal(above.result.text, 'No matches for sk-own', 'ours is not found from above either');
  });

  t.test(`${name}: an interrupted turn ends the search`, async (t) => {
    const { workspace } = places(t, { f: 'foo' });
    const abort = new AbortController();
    const searching = review(grep, { pattern: 'foo' }, workspace, { signal: abort.signal });
    abort.abort(new Error('over'));
    await t.rejects(searching, { message: 'over' });
  });

  t.test(
    `${name}: a directory that turns into a symlink and back all the time shows nothing outside`,
    onPosix,
    async (t) => {
      const { workspace, outside, at } = places(t, { 'd/f': 'foo near' });
      writeFileSync(join(outside, 'f'), 'foo SECRET');
      const d = JSON.stringify(at('d'));
      const stop = await adversary(
        t,
        `fs.renameSync(${d}, ${d} + '.away'); fs.symlinkSync(${JSON.stringify(outside)}, ${d}); fs.unlinkSync(${d}); fs.renameSync(${d} + '.away', ${d});`,
      );
      for (let n = 0; n < 40; n += 1) {
        const parsed = grep.parse({ pattern: 'foo', path: 'd' });
        if (!parsed.ok) throw new Error(parsed.error);
        const { need, result } = await review(grep, { pattern: 'foo', path: 'd' }, workspace);
        if (!need && /SECRET/.test(result.text)) t.fail(`round ${n}`);
      }
      t.ok((await stop()) > 0, 'the other side was at work');
      t.strictSame(readdirSync(outside), ['f']);
    },
  );
}

t.test('both find the same in the sources of this very project', async (t) => {
  const root = join(import.meta.dirname, '../../..');
  const [one, two] = await Promise.all(
    Object.values(engines).map((engine) =>
      resultText(
        createGrepFiles(settings(), engine),
        { pattern: 'export (async )?function \\w+', path: 'src/http', maxResults: 500 },
        root,
      ),
    ),
  );
  t.equal(one, two);
  t.match(one, /matching lines in/);
});

t.test('a regular expression that takes exponential time ends as an error where it would', async (t) => {
  const { workspace } = places(t, { f: `${'a'.repeat(60)}!` });
  const slow = createGrepFiles(settings(), createScriptEngine());
  t.match((await review(slow, { pattern: '^(a+)+$' }, workspace)).result, {
    isError: true,
    text: /takes too long on f/,
  });
  t.equal(
    await resultText(createGrepFiles(settings(), createRipgrepEngine()), { pattern: '^(a+)+$' }, workspace),
    'No matches for ^(a+)+$',
  );
});

t.test('where ripgrep is missing or cannot be run, our own code searches', onPosix, async (t) => {
  const { workspace, base } = places(t, { f: 'foo' });
  const notExecutable = join(base, 'rg');
  writeFileSync(notExecutable, readFileSync(await findRipgrep()).subarray(0, 100));
  chmodSync(notExecutable, 0o644);
  const noBinary = join(base, 'no-binary');
  writeFileSync(noBinary, 'no program');
  chmodSync(noBinary, 0o755);
  for (const path of [join(base, 'none'), notExecutable]) {
    const grep = createGrepFiles(settings(), createSearchEngine(createRipgrepEngine(async () => path)));
    t.equal(await resultText(grep, { pattern: 'foo' }, workspace), 'f\n  1: foo\n\n[1 matching line in 1 file.]');
    t.equal(
      await resultText(grep, { pattern: 'foo', path: 'f' }, workspace),
      'f\n  1: foo\n\n[1 matching line in 1 file.]',
    );
  }
});

t.test('a search that takes too long is ended and its process killed', onPosix, async (t) => {
  const { workspace, base, at } = places(t, { f: 'foo' });
  const slow = join(base, 'slow-rg');
  writeFileSync(slow, `#!/bin/sh\necho $$ > ${join(base, 'pid')}\nexec sleep 1000\n`);
  chmodSync(slow, 0o755);
  mkdirSync(at('d'));
  const { openDirectory } = await import('../../../src/agent/tools/files/handles.ts');
  const directory = await openDirectory(workspace);
  const end = await createRipgrepEngine(async () => slow).grepTree(
    {
      directory,
      skippedNames: [],
      skippedPaths: [],
      maxFileBytes: 1,
      signal: new AbortController().signal,
      // Within this time the script has to have written its id, on a busy machine too.
      timeoutMs: 8_000,
    },
    {
      pattern: 'x',
      ignoreCase: false,
      multiline: false,
      context: 0,
      include: () => true,
      nameGlobs: undefined,
      maxPerFile: 1,
      onMatch: () => true,
    },
  );
  await directory.close();
  t.equal(end, 'timedOut');
  const pid = Number(readFileSync(join(base, 'pid'), 'utf8'));
  t.throws(() => process.kill(pid, 0), { code: 'ESRCH' });
  renameSync(slow, `${slow}.old`);
});
