import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { parsePatch } from 'diff';
import fc from 'fast-check';
import t from 'tap';
import { applyEdit } from '../../../src/agent/tools/files/edit-apply.ts';
import { createEditFile, createWriteFile } from '../../../src/agent/tools/files/index.ts';
import { unifiedDiff } from '../../../src/agent/tools/files/unified-diff.ts';
import { adversary, places, resultText, review, settings } from './file-tools.ts';
import { contextOf } from './run-tool.ts';

const edit = createEditFile(settings());
const write = createWriteFile(settings());
const onPosix = { skip: process.platform === 'win32' && 'symlinks and permissions are those of POSIX' };
const edited = (text: string, oldText: string, newText: string, replaceAll = false) => {
  const result = applyEdit(text, { oldText, newText, replaceAll });
  return result.ok ? result.text : result.problem;
};

t.test('the one place is replaced, and a small diff shows it', async (t) => {
  const { workspace, at } = places(t, { f: 'a\nb\nc\nd\ne\nf\ng\nh\n' });
  t.equal(
    await resultText(edit, { path: 'f', oldText: 'd\ne', newText: 'D' }, workspace),
    [
      'Edited f: 1 replacement.',
      '',
      '--- f',
      '+++ f',
      '@@ -1,8 +1,7 @@',
      ' a',
      ' b',
      ' c',
      '-d',
      '-e',
      '+D',
      ' f',
      ' g',
      ' h',
    ].join('\n'),
  );
  t.equal(readFileSync(at('f'), 'utf8'), 'a\nb\nc\nD\nf\ng\nh\n');
});

t.test('names that other agents use for the parameters are understood', async (t) => {
  const { workspace, at, put } = places(t);
  for (const names of [
    ['file_path', 'old_string', 'new_string', 'replace_all'],
    ['filePath', 'oldString', 'newString', 'replaceAll'],
    ['path', 'old_text', 'newText', 'all'],
    ['target_file', 'old_str', 'new_str', 'replaceAll'],
  ]) {
    put('f', 'x x');
    await resultText(edit, Object.fromEntries(names.map((name, n) => [name, ['f', 'x', 'y', 'true'][n]])), workspace);
    t.equal(readFileSync(at('f'), 'utf8'), 'y y', names.join());
  }
});

t.test('nothing in the new text has a meaning', async (t) => {
  for (const odd of ['$&', '$1', '$$', "$'", '$`', '\\n', '\0']) t.equal(edited('a b c', 'b', odd), `a ${odd} c`);
  t.equal(edited('a.c abc', 'a.c', 'x'), 'x abc', 'nor in the old one');
});

t.test('several places: an error with their lines, or all of them', async (t) => {
  t.match(
    edited('x\ny\nx\n', 'x', 'z'),
    /^oldText is at 2 places \(lines 1, 3\)\. Add lines around it .* or set replaceAll\.$/,
  );
  t.match(edited('aaa', 'aa', 'b'), /2 places/, 'overlapping ones are several');
  t.match(edited('x'.repeat(5_000), 'x', 'y'), /1000 places or more \(lines 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, …\)/);
  t.equal(edited('x\ny\nx\n', 'x', 'zz', true), 'zz\ny\nzz\n');
  t.equal(edited('aaaaa', 'aa', 'b', true), 'bba');
});

t.test('line ends and spaces before them may differ, nothing else', async (t) => {
  t.equal(edited('a  \nb\t\nc', 'a\nb\nc', 'X'), 'X');
  t.equal(edited('a\nb\nc', 'a \t\nb  \nc', 'X'), 'X');
  t.equal(edited('a\nb\nc', 'b  ', 'X'), 'a\nX\nc', 'spaces at the end of oldText');
  t.equal(edited('a\nb   \nc', 'a \nb ', 'X'), 'X\nc');
  t.equal(edited('a\nb   \nc', 'a\nb ', 'X'), 'X  \nc', 'an exact place is an exact place');
  t.equal(edited('a\nb c', 'a \nb ', 'X'), 'Xc', 'a space within a line counts');
  t.equal(edited('a\nb   \nc', 'a \nb', 'X'), 'X   \nc', 'what oldText does not name stays');
  t.equal(edited('a\r\nb\r\nc', 'a\nb', 'X\nY'), 'X\r\nY\r\nc');
  t.equal(edited('a\nb', 'a\r\nb', 'X\r\nY'), 'X\nY');
  t.equal(edited('x  \n\ny', 'x\n\ny', 'z'), 'z');
  for (const [text, oldText] of [
    ['  a\n  b', 'a\nb'],
    ['a\nb', ' a\nb'],
    ['a  b', 'a b'],
    ['A', 'a'],
    ['a\n\nb', 'a\nb'],
    ['“a', '"a'],
  ] as const) {
    t.match(edited(text, oldText, 'X'), /oldText is not in the file/, JSON.stringify([text, oldText]));
  }
});

t.test('such a place must be the only one', async (t) => {
  t.match(
    edited('a \nb\n\na\t\nb\n', 'a\nb', 'X'),
    /^oldText is, but for spaces at line ends, at 2 places \(lines 1, 4\)/,
  );
  t.match(edited('a \nb\n\na\t\nb\n', 'a\nb', 'X', true), /with replaceAll it must match exactly/);
  t.equal(edited('a \nb\n\na\nb\n', 'a\nb', 'X'), 'a \nb\n\nX\n', 'an exact one comes first');
  t.equal(edited('a\r\nb\r\na\r\nb\r\n', 'a\nb', 'X', true), 'X\r\nX\r\n', 'in a file of CR LF those are meant');
});

t.test('the file keeps its line ends', async (t) => {
  t.equal(edited('a\r\nb\r\n', 'a', 'x\ny'), 'x\r\ny\r\nb\r\n');
  t.equal(edited('a\nb\n', 'a', 'x\r\ny'), 'x\ny\nb\n');
  t.equal(edited('a\r\nb\r\nc\n', 'c', 'x\ny'), 'a\r\nb\r\nx\r\ny\n', 'of the more frequent kind');
  t.equal(edited('a\r\nb\nc\nd\n', 'a\r\nb', 'x\ny'), 'x\r\ny\nc\nd\n', 'of the place itself first');
  t.equal(edited('a\r\nb', '\nb', '\nc'), 'a\r\nc', 'CR LF is never torn');
  t.equal(edited('one', 'one', 'a\r\nb'), 'a\r\nb', 'without any line end all are as given');
  t.match(edited('a\nb', 'a\nb', 'a\r\nb'), /would change nothing/);
});

t.test('wrong edits get a helpful answer', async (t) => {
  t.match(edited('a', '', 'b'), /oldText is empty.*WriteFile/);
  t.match(edited('a', 'a', 'a'), /are the same/);
  const text = 'function one() {\n  return 1;\n}\n\nfunction two() {\n  return 2;\n}\n';
  t.equal(
    edited(text, 'function two() {\n      return 2;\n      }', 'x'),
    'oldText is not in the file. The nearest text begins at line 5 (only spaces or indentation differ):\n' +
      'function two() {\n  return 2;\n}\nCopy oldText exactly from the file.',
  );
  t.match(
    edited(text, 'function tow() {\n', 'x'),
    /The nearest text begins at line 5:\nfunction two\(\) \{\n {2}return 2;\n\}\n/,
  );
  t.match(edited(text, 'zzzzzz', 'x'), /nothing in it is similar/);
  t.match(edited('', 'x', 'y'), /nothing in it is similar/);
  t.match(
    edited(text, 'function zero() {}', 'function two() {\n  return 2;\n}'),
    /^oldText is not in the file, but newText already is, at line 5: the edit seems to have been made before/,
  );
  t.match(edited(`${'x'.repeat(9_000)}abc`, `${'x'.repeat(300)}abd`, 'y'), /… \[\d+ more characters\]/, 'bounded');
});

t.test('an edit preserves BOM, UTF-16 and permissions', onPosix, async (t) => {
  const { workspace, at, put } = places(t);
  put('bom', '\uFEFFgrün\r\n');
  chmodSync(at('bom'), 0o751);
  await resultText(edit, { path: 'bom', oldText: 'grün\n', newText: 'blau\n' }, workspace);
  t.equal(readFileSync(at('bom'), 'utf8'), '\uFEFFblau\r\n');
  t.equal(statSync(at('bom')).mode & 0o777, 0o751);
  const little = Buffer.from('\uFEFFgrün 🎼', 'utf16le');
  for (const [name, bytes] of [
    ['le', little],
    ['be', Buffer.from(little).swap16()],
  ] as const) {
    put(name, bytes);
    await resultText(edit, { path: name, oldText: 'grün', newText: 'rot' }, workspace);
    const after = readFileSync(at(name));
    t.equal((name === 'be' ? after.swap16() : after).toString('utf16le'), '\uFEFFrot 🎼');
  }
});

t.test('an edit that cannot be applied names the reason and changes nothing', onPosix, async (t) => {
  const { workspace, at, put } = places(t, { f: 'text', 'd/x': '' });
  put('latin1', Buffer.from('gr\xfcn text', 'latin1'));
  put('odd', Buffer.concat([Buffer.from('\uFEFFtext', 'utf16le'), Buffer.from('x')]));
  put('binary', Buffer.from('text\0'));
  put('large', `text${'x'.repeat(1_048_576)}`);
  put('full', `text${'x'.repeat(1_048_000)}`);
  execFileSync('mkfifo', [at('fifo')]);
  const before = new Map(
    ['f', 'latin1', 'odd', 'binary', 'large', 'full'].map((name) => [name, readFileSync(at(name))]),
  );
  for (const [path, text] of [
    ['f2', /there is no such file/],
    ['d', /it is a directory/],
    ['fifo', /a FIFO/],
    ['latin1', /not valid UTF-8 all through/],
    ['odd', /not valid UTF-16LE all through/],
    ['binary', /not a text file/],
    ['large', /files are edited up to 1\.0 MB/],
    ['full', /it has 1\.0 MB, files are edited up to/],
    ['.oratorio/config.json', /refused/],
  ] as const) {
    const args = { path, oldText: 'text', newText: 'y'.repeat(1_000) };
    t.match((await review(edit, args, workspace)).result, { isError: true, text }, path);
  }
  for (const [name, bytes] of before) {
    if (name === 'f') continue;
    t.ok(readFileSync(at(name)).equals(bytes), name);
  }
  t.match((await review(edit, { path: 'f', oldText: 'none', newText: 'x' }, workspace)).result, {
    isError: true,
    text: /^Error: f: oldText is not/,
  });
  t.equal(readFileSync(at('f'), 'utf8'), 'text');
});

t.test('it always needs approval, for the same scope as writing', async (t) => {
  const { workspace, at } = places(t, { f: 'a' });
  const { need } = await review(edit, { path: 'f', oldText: 'a', newText: 'b' }, workspace);
  t.match(need, { kind: 'file', operation: 'edit', target: at('f'), scopeKey: `file:write:${at('f')}` });
});

t.test('edits of one file at once all come to be', async (t) => {
  const { workspace, at } = places(t, { f: Array.from({ length: 25 }, (_, n) => `<${n}>`).join('\n') });
  await Promise.all(
    Array.from({ length: 25 }, (_, n) =>
      resultText(edit, { path: n % 2 ? 'f' : './f', oldText: `<${n}>`, newText: `(${n})` }, workspace),
    ),
  );
  t.equal(readFileSync(at('f'), 'utf8'), Array.from({ length: 25 }, (_, n) => `(${n})`).join('\n'));
});

/** A signal that does `work` when the tool checks it just before the file is replaced. */
function whenAboutToWrite(directory: string, work: () => void): AbortSignal {
  const { signal } = new AbortController();
  return Object.assign(signal, {
    throwIfAborted: () => {
      if (readdirSync(directory).some((name) => name.endsWith('.tmp'))) work();
    },
  });
}

t.test('a file that another program changes at the same moment is edited in its new state', async (t) => {
  const { workspace, at } = places(t, { f: 'one two' });
  let times = 0;
  const once = whenAboutToWrite(workspace, () => {
    times += 1;
    if (times === 1) writeFileSync(at('f'), 'one two three');
  });
  await review(edit, { path: 'f', oldText: 'two', newText: '2' }, workspace, { signal: once });
  t.equal(readFileSync(at('f'), 'utf8'), 'one 2 three');

  // Another size every time: within one tick of the file system's clock nothing else distinguishes two versions.
  const always = whenAboutToWrite(workspace, () => {
    times += 1;
    writeFileSync(at('f'), `one two ${'x'.repeat(100 * times)}`);
  });
  const { result } = await review(edit, { path: 'f', oldText: 'one', newText: '1' }, workspace, { signal: always });
  t.match(result, { isError: true, text: /^Error: f: oldText is not in the file|another program changed it/ });
  t.notMatch(readFileSync(at('f'), 'utf8'), /^1/);

  const gone = whenAboutToWrite(workspace, () => rmSync(at('f'), { force: true }));
  writeFileSync(at('f'), 'one two');
  t.match((await review(edit, { path: 'f', oldText: 'one', newText: '1' }, workspace, { signal: gone })).result, {
    isError: true,
    text: /no such file/,
  });
  t.strictSame(readdirSync(workspace), ['.oratorio'], 'nothing is left, nothing came back');
});

t.test('a file that turns into a symlink and back all the time: nothing outside is edited', onPosix, async (t) => {
  const { workspace, outside, at } = places(t, { f: 'start' });
  writeFileSync(join(outside, 'o'), 'start SECRET');
  const [f, spare, link] = [at('f'), at('spare'), at('link')].map((path) => JSON.stringify(path));
  const stop = await adversary(
    t,
    `fs.writeFileSync(${spare}, 'start'); fs.renameSync(${spare}, ${f}); fs.symlinkSync(${JSON.stringify(join(outside, 'o'))}, ${link}); fs.renameSync(${link}, ${f})`,
  );
  for (let n = 0; n < 150; n += 1) {
    const parsed = edit.parse({ path: 'f', oldText: 'start', newText: `edited ${n}` });
    if (!parsed.ok) throw new Error(parsed.error);
    const context = contextOf({ workspacePath: workspace });
    const need = await edit.approvalFor(parsed.args, context);
    if (need?.target !== at('f')) continue;
    const { text } = await edit.run(parsed.args, context);
    if (/SECRET/.test(text)) t.fail('read outside');
  }
  t.ok((await stop()) > 0, 'the other side was at work');
  t.equal(readFileSync(join(outside, 'o'), 'utf8'), 'start SECRET');
});

t.test('an edit is refused when the approved path leads elsewhere', onPosix, async (t) => {
  const { workspace, outside, at } = places(t, { 'd/f': 'near' });
  writeFileSync(join(outside, 'f'), 'near');
  const parsed = edit.parse({ path: 'd/f', oldText: 'near', newText: 'x' });
  if (!parsed.ok) throw new Error(parsed.error);
  const context = contextOf({ workspacePath: workspace });
  await edit.approvalFor(parsed.args, context);
  renameSync(at('d'), at('away'));
  symlinkSync(outside, at('d'));
  t.match(await edit.run(parsed.args, context), { isError: true, text: /now leads elsewhere/ });
  t.equal(readFileSync(join(outside, 'f'), 'utf8'), 'near');
});

t.test('an approval shows the diff of an edit, and says that the one of a large file is not shown', async (t) => {
  const { workspace, at } = places(t, { f: 'one\ntwo\nthree\n', large: `x${'y\n'.repeat(200_000)}` });
  const context = contextOf({ workspacePath: workspace });
  const previewOf = async (args: unknown) => {
    const parsed = edit.parse(args);
    if (!parsed.ok) throw new Error(parsed.error);
    return (await edit.approvalFor(parsed.args, context))?.preview?.();
  };
  t.equal(
    await previewOf({ path: 'f', oldText: 'two', newText: '2' }),
    `--- ${at('f')}\n+++ ${at('f')}\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three`,
  );
  t.equal(await previewOf({ path: 'f', oldText: 'four', newText: '4' }), undefined, 'what cannot be applied');
  t.match(
    await previewOf({ path: 'large', oldText: 'x', newText: 'z' }),
    /\n\\ Not shown: the file is too large to compare$/,
  );
  t.equal(readFileSync(at('f'), 'utf8'), 'one\ntwo\nthree\n', 'nothing is written');
});

t.test(
  'regression: H51 the change of an approval is a true diff up to its limit, and counts the lines that it leaves out',
  async (t) => {
    const name = 'a\n@@ -1,1 +1,1 @@\n+harmless';
    const { workspace } = places(t, { [name]: 'one\n' });
    const previewOf = async (path: string, content: string) => {
      const parsed = write.parse({ path, content });
      if (!parsed.ok) throw new Error(parsed.error);
      return (await write.approvalFor(parsed.args, contextOf({ workspacePath: workspace })))?.preview?.();
    };
    const whole = (await previewOf(name, 'two\n')) ?? '';
    t.same(whole.split('\n').slice(2), ['@@ -1,1 +1,1 @@', '-one', '+two'], 'the name adds no line');
    const wide = `${'x'.repeat(60_000)} end`;
    t.match(await previewOf('wide', wide), / end\n/, 'no line is cut');
    const long = (await previewOf('long', 'line\n'.repeat(500))) ?? '';
    t.match(long, /^@@ -0,0 \+1,400 @@$/m);
    t.match(long, /\n\\ Not shown: 100 more lines$/);
    t.equal(
      parsePatch(long)
        .at(0)
        ?.hunks.at(0)
        ?.lines.filter((line) => line.startsWith('+')).length,
      400,
    );
    t.match(await previewOf('huge', `${'y'.repeat(70_000)}\nz\n`), /^[^@]*\\ Not shown: 2 more lines$/);
  },
);

t.test('the diff is bounded and counts the lines that it leaves out', async (t) => {
  const before = Array.from({ length: 200 }, (_, n) => `line ${n}`).join('\n');
  const result = applyEdit(before, { oldText: 'line', newText: 'row', replaceAll: true });
  if (!result.ok) throw new Error(result.problem);
  const lines = unifiedDiff('f', before, result.text, result.changes).split('\n');
  t.equal(lines.length, 2 + 60 + 1);
  t.equal(lines.at(-1), '[341 more lines of the diff are not shown.]');
});

t.test('a change of 130,000 lines has a diff', (t) => {
  const count = 130_000;
  const [before, replacement] = ['line\n'.repeat(count), 'row\n'.repeat(count)];
  const lines = unifiedDiff('f', before, replacement, [{ start: 0, end: before.length, replacement }]).split('\n');
  t.same(lines.slice(2, 4), [`@@ -1,${count} +1,${count} @@`, '-line']);
  t.equal(lines.at(-1), `[${2 * count + 1 - 60} more lines of the diff are not shown.]`);
  t.end();
});

/** Texts that collide often: few letters, all kinds of line ends and spaces. */
const piece = fc.constantFrom('a', 'b', ' ', '\t', '\n', '\r\n', '$&', 'é', '🎼');
const text = (maxLength: number) => fc.array(piece, { maxLength }).map((pieces) => pieces.join(''));
const lfText = (maxLength: number) => text(maxLength).map((some) => some.replaceAll('\r\n', '\n'));

t.test('as a model of it says: in a text of LF the only exact place is replaced', async () => {
  fc.assert(
    fc.property(lfText(12), lfText(6), lfText(12), lfText(6), (before, oldText, after, newText) => {
      const whole = before + oldText + after;
      const isUnique = oldText !== '' && whole.indexOf(oldText) === whole.lastIndexOf(oldText);
      fc.pre(isUnique && oldText !== newText);
      const result = applyEdit(whole, { oldText, newText, replaceAll: false });
      return result.ok && !result.differs && result.text === before + newText + after;
    }),
    { numRuns: 2_000 },
  );
});

t.test('as a model of it says: a file of CR LF is edited as if it were one of LF', async () => {
  const crlf = (some: string) => some.replaceAll('\n', '\r\n');
  fc.assert(
    fc.property(lfText(20), lfText(5), lfText(5), fc.boolean(), (whole, oldText, newText, replaceAll) => {
      const plain = applyEdit(whole, { oldText, newText, replaceAll });
      const other = applyEdit(crlf(whole), { oldText, newText, replaceAll });
      // Without a line end in the text its kind is unknown.
      fc.pre(whole.includes('\n'));
      return plain.ok === other.ok && (!plain.ok || !other.ok || other.text === crlf(plain.text));
    }),
    { numRuns: 2_000 },
  );
});

t.test('replaceAll equals splitting and joining (property)', async () => {
  fc.assert(
    fc.property(lfText(30), lfText(3), lfText(4), (whole, oldText, newText) => {
      fc.pre(oldText !== '' && whole.includes(oldText) && whole.split(oldText).join(newText) !== whole);
      const result = applyEdit(whole, { oldText, newText, replaceAll: true });
      return result.ok && result.text === whole.split(oldText).join(newText);
    }),
    { numRuns: 2_000 },
  );
});

t.test('any edit changes only the places it names, which match apart from spaces at line ends', async () => {
  const essence = (some: string) => some.replaceAll(/[ \t]*\r?\n/g, '\n').replace(/[ \t]+$/, '');
  fc.assert(
    fc.property(text(30), text(6), text(6), fc.boolean(), (whole, oldText, newText, replaceAll) => {
      const result = applyEdit(whole, { oldText, newText, replaceAll });
      if (!result.ok) return result.problem.length > 0;
      // Other slips have tests of their own.
      fc.pre(result.differs === undefined || result.differs === 'spaces at line ends');
      let rebuilt = '';
      let at = 0;
      for (const { start, end, replacement } of result.changes) {
        if (essence(whole.slice(start, end)) !== essence(oldText)) return false;
        if (essence(replacement) !== essence(newText)) return false;
        rebuilt += whole.slice(at, start) + replacement;
        at = end;
      }
      const isOne = replaceAll || result.changes.length === 1;
      return isOne && rebuilt + whole.slice(at) === result.text;
    }),
    { numRuns: 5_000 },
  );
});

t.test('a match apart from spaces equals that of a search at every place', async () => {
  const strip = (some: string) => some.replaceAll(/[ \t]*\r?\n/g, '\n');
  const withEnds = (some: string, lineEnd: string) => some.replaceAll(/\r?\n/g, lineEnd);
  fc.assert(
    fc.property(text(14), text(5), (whole, oldText) => {
      const result = applyEdit(whole, { oldText, newText: 'NEW-NEW-NEW', replaceAll: false });
      fc.pre(!result.ok || result.differs === undefined || result.differs === 'spaces at line ends');
      // A place is a span whose essence is that of oldText, up to spaces that a line of the file ends in.
      const tail = /[ \t]+$/.exec(oldText)?.[0] ?? '';
      const wanted = strip(`${oldText}\n`).slice(0, -1);
      const stripped = strip(`${whole}\n`).slice(0, -1);
      const places = countPlaces(stripped, wanted, tail);
      const exact = countOf(whole, oldText);
      fc.pre(
        wanted !== '' &&
          exact === 0 &&
          // Line ends as in the file, and nothing else, are a match before any space is tolerated.
          countOf(whole, withEnds(oldText, '\n')) === 0 &&
          countOf(whole, withEnds(oldText, '\r\n')) === 0 &&
          countOf(whole, strip(oldText)) === 0 &&
          countOf(strip(whole), strip(oldText)) === 0,
      );
      return result.ok === (places === 1);
    }),
    { numRuns: 5_000 },
  );
});

function countOf(whole: string, some: string): number {
  let found = 0;
  for (let at = 0; some !== '' && at + some.length <= whole.length; at += 1) if (whole.startsWith(some, at)) found += 1;
  return found;
}

function countPlaces(whole: string, wanted: string, tail: string): number {
  if (tail === '') return countOf(whole, wanted);
  const atLineEnd = Array.from({ length: whole.length }, (_, at) => at).filter((at) => {
    const end = at + wanted.length;
    return whole.startsWith(wanted, at) && (end === whole.length || whole[end] === '\n');
  });
  return countOf(whole, wanted + tail) + atLineEnd.length;
}
