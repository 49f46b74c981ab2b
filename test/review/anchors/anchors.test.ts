import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { anchorFinding, type DiffFile, parseDiff } from '../../../src/review/anchors/index.ts';
import { Repository } from './repository.ts';

/** `git diff` of two versions of one file, as git prints it. */
function gitDiff(directory: string, before: string | Buffer, after: string | Buffer): DiffFile[] {
  const repository = join(directory, Math.random().toString(36).slice(2));
  mkdirSync(repository);
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@t', '-c', 'core.autocrlf=false', ...args], {
      cwd: repository,
      maxBuffer: 64 * 1024 * 1024,
    }).toString();
  git('init', '-q');
  const file = join(repository, 'file.txt');
  writeFileSync(file, before);
  git('add', '-A');
  git('commit', '-qm', 'before');
  writeFileSync(file, after);
  return parseDiff(git('diff'));
}

const differ = new Repository(t.testdir()).differ(t);

/** Diff of two trees, by one process for all tests. */
async function quickDiff(before: string, after: string, name = 'file.txt'): Promise<DiffFile[]> {
  return parseDiff(await differ({ [name]: before }, { [name]: after }));
}

const fileWith = (lines: readonly string[]) => `${lines.join('\n')}\n`;
const noHead = () => null;

t.test('the copied text determines the line, with any given line', async (t) => {
  const before = fileWith(['one', 'two', 'three', 'four', 'five']);
  const files = await quickDiff(before, before.replace('three', 'THREE'));
  const result = anchorFinding(files, { path: 'file.txt', oldText: 'THREE', line: 99 }, noHead);
  t.match(result, { anchor: { placement: 'inline', side: 'RIGHT', line: 3 } });
});

t.test('several lines become a range, and whole lines replace it', async (t) => {
  const before = fileWith(['a', '  b', 'c']);
  const files = await quickDiff(before, fileWith(['a', '  b', '  x', 'c']));
  const result = anchorFinding(files, { path: 'file.txt', oldText: 'b\nx', newText: 'y' }, noHead);
  t.match(result, { anchor: { line: 3, startLine: 2, replacement: '  y' } }, 'with the indentation that was left out');
});

t.test('part of a line is found, and a suggestion contains the rest of the line', async (t) => {
  const files = await quickDiff('const a = 1;\n', 'const a = foo(1);\n');
  const result = anchorFinding(files, { path: 'file.txt', oldText: 'foo(1)', newText: 'bar(1)' }, noHead);
  t.match(result, { anchor: { line: 1, replacement: 'const a = bar(1);' } });
});

t.test('the same text twice needs a hint, or more text', async (t) => {
  const lines = Array.from({ length: 9 }, (_, index) => (index % 4 === 0 ? 'same' : `line ${index}`));
  const files = await quickDiff('other\n', fileWith(lines));
  t.match(anchorFinding(files, { path: 'file.txt', oldText: 'same' }, noHead), { error: { code: 'oldTextAmbiguous' } });
  t.match(anchorFinding(files, { path: 'file.txt', oldText: 'same', line: 6 }, noHead), { anchor: { line: 5 } });
  t.match(
    anchorFinding(files, { path: 'file.txt', oldText: 'same', line: 3 }, noHead),
    {
      error: { code: 'oldTextAmbiguous' },
    },
    'two places are equally near',
  );
});

t.test('twice in one line is one place to speak of, and no place to change', async (t) => {
  const files = await quickDiff('x\n', 'foo + foo\n');
  t.match(anchorFinding(files, { path: 'file.txt', oldText: 'foo' }, noHead), { anchor: { line: 1 } });
  t.match(anchorFinding(files, { path: 'file.txt', oldText: 'foo', newText: 'bar' }, noHead), {
    error: { code: 'oldTextAmbiguous' },
  });
});

t.test('text outside of the diff is anchored at the file; missing text is an error', async (t) => {
  const lines = Array.from({ length: 40 }, (_, index) => `line ${index}`);
  const after = fileWith(lines.map((line) => (line === 'line 30' ? 'changed' : line)));
  const files = await quickDiff(fileWith(lines), after);
  const find = (oldText: string) => anchorFinding(files, { path: 'file.txt', oldText }, () => after);
  t.match(find('line 3'), { anchor: { placement: 'file', reason: 'outsideDiff' } });
  t.match(find('nowhere'), { error: { code: 'oldTextNotFound', message: /28–34/ } });
});

t.test('regression: an exact text outside the diff is not anchored at indented lines of the diff', async (t) => {
  const lines = ['x', ...Array.from({ length: 20 }, (_, index) => `line ${index}`), '  x', 'end'];
  const after = fileWith([...lines.slice(0, -1), 'changed']);
  const files = await quickDiff(fileWith(lines), after);
  const find = (line?: number) =>
    anchorFinding(files, { path: 'file.txt', oldText: 'x', ...(line !== undefined && { line }) }, () => after);
  t.match(find(), { anchor: { placement: 'file', reason: 'outsideDiff' } });
  t.match(find(1), { anchor: { placement: 'file', reason: 'outsideDiff' } });
  t.match(find(22), { anchor: { placement: 'inline', line: 22 } }, 'unless the line names them');
});

t.test('a removed line is on the left', async (t) => {
  const files = await quickDiff(fileWith(['a', 'b', 'c']), fileWith(['a', 'c']));
  t.match(anchorFinding(files, { path: 'file.txt', oldText: 'b', side: 'LEFT', newText: 'x' }, noHead), {
    anchor: { side: 'LEFT', line: 2, replacement: undefined },
  });
});

t.test('a path that is not changed names those that look like it', async (t) => {
  const files = await quickDiff('a\n', 'b\n');
  t.match(anchorFinding(files, { path: 'src/file.txt', oldText: 'b' }, noHead), {
    error: { code: 'pathNotInDiff', message: /Did you mean file\.txt/ },
  });
  t.match(anchorFinding(files, { path: './file.txt', oldText: 'b' }, noHead), { anchor: { line: 1 } });
});

t.test('a line without text must be in the diff', async (t) => {
  const files = await quickDiff('a\n', 'b\n');
  t.match(anchorFinding(files, { path: 'file.txt', line: 1 }, noHead), { anchor: { line: 1 } });
  t.match(anchorFinding(files, { path: 'file.txt', line: 7 }, noHead), { error: { code: 'lineNotCommentable' } });
  t.match(anchorFinding(files, { path: 'file.txt' }, noHead), { anchor: { placement: 'file', reason: 'noText' } });
});

t.test('names with spaces, quotes and letters of any script are read as git writes them', async (t) => {
  for (const name of ['a b.txt', 'ümläut.txt', 'tab\there.txt', 'quo"te.txt', 'back\\slash.txt', '日本.txt', '--- a']) {
    const [file] = await quickDiff('a\n', 'b\n', name);
    t.equal(file?.path, name);
  }
});

t.test('binary files, CRLF and a missing line end', async (t) => {
  const [binary] = gitDiff(t.testdir(), Buffer.from([0, 1, 2]), Buffer.from([0, 3]));
  t.match(binary, { isBinary: true, hunks: [] });
  const files = await quickDiff('a\r\nb\r\n', 'a\r\nB\r\n');
  t.match(anchorFinding(files, { path: 'file.txt', oldText: 'a\nB' }, noHead), { anchor: { startLine: 1, line: 2 } });
  const open = await quickDiff('a\nb', 'a\nc');
  t.match(anchorFinding(open, { path: 'file.txt', oldText: 'c' }, noHead), { anchor: { line: 2 } });
});

t.test('lines that look like headers of a diff are lines', async (t) => {
  const files = await quickDiff(fileWith(['-- a', 'x', '++ b']), fileWith(['@@ -1 +1 @@', 'diff --git a/x b/x', 'y']));
  t.equal(files.length, 1);
  t.match(anchorFinding(files, { path: 'file.txt', oldText: 'diff --git a/x b/x' }, noHead), { anchor: { line: 2 } });
  t.match(anchorFinding(files, { path: 'file.txt', oldText: '-- a', side: 'LEFT' }, noHead), { anchor: { line: 1 } });
});

const line = fc.constantFrom('', ' ', '  x', 'x', 'y', '}', '- a', '+ b', '@@ z', 'function f() {', '\treturn 1;', 'ü');
const text = fc.array(line, { maxLength: 30 });

t.test('a diff of two trees is that of a working tree', async (t) => {
  for (const [before, after] of fc.sample(fc.tuple(text, text), 3))
    t.strictSame(
      await quickDiff(fileWith(before), fileWith(after)),
      gitDiff(t.testdir(), fileWith(before), fileWith(after)),
    );
});

/** Replacement of lines of a file, as an anchor names it. */
interface Replacement {
  readonly head: readonly string[];
  readonly start: number;
  readonly end: number;
  readonly old: readonly string[];
  readonly text: string;
}

t.test('an anchor is exactly at the place where git finds the text', async (t) => {
  const replacements: Replacement[] = [];
  await fc.assert(
    fc.asyncProperty(
      text,
      text,
      fc.nat(),
      fc.nat(3),
      fc.array(line, { maxLength: 3 }),
      async (before, after, seed, more, instead) => {
        const [file] = await quickDiff(fileWith(before), fileWith(after));
        if (!file) return;
        const places = file.hunks.flatMap(({ lines }) => {
          const right = lines.filter(({ newLine }) => newLine !== null);
          return right.map((_, index) => right.slice(index, index + 1 + more));
        });
        const chosen = places[seed % Math.max(1, places.length)];
        const first = chosen?.[0]?.newLine;
        if (!chosen || first === undefined || first === null) return;
        const oldText = chosen.map((each) => each.text).join('\n');
        const newText = instead.join('\n');
        const result = anchorFinding([file], { path: file.path, oldText, newText, line: first }, () => fileWith(after));
        if ('error' in result || result.anchor.placement !== 'inline') return;
        const { line: end, startLine: start = end, replacement = '' } = result.anchor;
        const old = oldText.split('\n').slice(0, end - start + 1);
        replacements.push({ head: after, start, end, old, text: replacement });
      },
    ),
    { numRuns: 150 },
  );
  t.ok(replacements.length > 50, `${replacements.length} anchors`);
  const refused = refusedByGit(t.testdir(), replacements);
  for (const each of replacements) t.notOk(refused.has(each), JSON.stringify(each));
});

/** Checks a patch for each replacement in one process: git takes it only if it replaces these very lines at this very place. */
function refusedByGit(directory: string, replacements: readonly Replacement[]): ReadonlySet<Replacement | undefined> {
  const patches = replacements.flatMap(({ head, start, end, old, text }, index) => {
    writeFileSync(join(directory, `${index}.txt`), fileWith(head));
    const fresh = text === '' ? [] : text.split('\n');
    return [
      `--- a/${index}.txt`,
      `+++ b/${index}.txt`,
      `@@ -${start},${end - start + 1} +${fresh.length === 0 ? start - 1 : start},${fresh.length} @@`,
      ...old.map((each) => `-${each}`),
      ...fresh.map((each) => `+${each}`),
    ];
  });
  const { status, stderr } = spawnSync('git', ['apply', '--check', '--unidiff-zero', '--whitespace=nowarn', '-'], {
    cwd: directory,
    input: `${patches.join('\n')}\n`,
  });
  const refused = [...stderr.toString().matchAll(/^error: .*?(\d+)\.txt/gm)];
  if (status !== 0 && refused.length === 0) throw new Error(`git apply ended with ${status}: ${stderr}`);
  return new Set(refused.map(([, index]) => replacements[Number(index)]));
}
