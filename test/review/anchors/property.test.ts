import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { anchorFinding, type DiffFile, parseDiff } from '../../../src/review/anchors/index.ts';
import { anyCharacter } from '../../any-character.ts';
import { Repository, type Tree } from './repository.ts';

const line = fc.constantFrom(
  ...[
    '',
    ' ',
    '  x',
    'x',
    'y',
    '}',
    '- a',
    '+ b',
    '-- a',
    '++ b',
    '@@ -1 +1 @@',
    'diff --git a/x b/x',
    '\\ No newline',
  ],
  ...[
    '\treturn 1;',
    'ü',
    '日本語',
    '👩‍💻 code',
    'e\u0301',
    'a\rb',
    '\f',
    'a\u2028b',
    'rename to z',
    'Binary files a and b differ',
  ],
);
const lineEnd = fc.constantFrom('\n', '\r\n');
/** Blocks that repeat, mixed or missing line ends. */
const text = fc
  .tuple(
    fc.array(fc.tuple(fc.array(line, { maxLength: 6 }), fc.integer({ min: 1, max: 3 })), { maxLength: 6 }),
    lineEnd,
    fc.boolean(),
  )
  .map(([blocks, end, isOpen]) => {
    const lines = blocks.flatMap(([block, times]) => Array.from({ length: times }, () => block).flat());
    const whole = lines.map((each) => each + end).join('');
    return isOpen ? whole.slice(0, -end.length) : whole;
  });
const path = fc.constantFrom(
  'a.txt',
  'dir/b c.txt',
  'ümläut/日本.txt',
  'quo"te.txt',
  'tab\there',
  'back\\slash',
  '--- a',
  'b/a.txt',
);
/** Lines taken out, put in, changed, like edits of people, rather than two texts that have nothing in common. */
const edit = fc.array(fc.tuple(fc.nat(60), fc.nat(3), fc.array(line, { maxLength: 3 })), { maxLength: 4 });
function edited(before: string, edits: readonly (readonly [number, number, string[]])[]): string {
  const lines = before.split('\n');
  for (const [at, removed, added] of edits) lines.splice(at % (lines.length + 1), removed, ...added);
  return lines.join('\n');
}
const change = fc
  .tuple(
    fc.dictionary(path, text, { maxKeys: 4 }),
    fc.dictionary(path, edit, { maxKeys: 4 }),
    fc.dictionary(path, text, { maxKeys: 1 }),
    fc.boolean(),
  )
  .map(([before, edits, added, renames]) => {
    const kept = Object.entries(before).map(([name, old]) => [
      renames && name === 'a.txt' ? 'moved/a.txt' : name,
      edited(old, edits[name] ?? []),
    ]);
    return { before, after: { ...added, ...Object.fromEntries(kept) } as Tree };
  });

/** Lines as git counts them: between line feeds, and after the last one if it is not empty. */
function linesOf(whole: string): string[] {
  const lines = whole.split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines;
}
const withoutReturn = (each: string) => each.replace(/\r$/, '');
const repository = new Repository(t.testdir());
const oldNameOf = (file: DiffFile) => file.oldPath ?? file.path;

t.test('every line of a parsed diff is the line of that number in that file', async (t) => {
  const diff = repository.differ(t);
  let lines = 0;
  await fc.assert(
    fc.asyncProperty(change, async ({ before, after }) => {
      const files = parseDiff(await diff(before, after));
      for (const file of files) {
        for (const each of file.hunks.flatMap((hunk) => hunk.lines)) {
          lines += 1;
          const old = linesOf(before[oldNameOf(file)] ?? '');
          const fresh = linesOf(after[file.path] ?? '');
          if (each.oldLine !== null && old[each.oldLine - 1] !== each.text) return false;
          if (each.newLine !== null && fresh[each.newLine - 1] !== each.text) return false;
        }
      }
      const changed = Object.keys({ ...before, ...after }).filter((name) => before[name] !== after[name]);
      const named = new Set(files.flatMap((file) => [file.path, oldNameOf(file)]));
      return changed.every((name) => named.has(name)) && [...named].every((name) => name in before || name in after);
    }),
    { numRuns: 120 },
  );
  t.ok(lines > 200, 'there was something to compare');
});

const place = fc.record({
  file: fc.nat(9),
  first: fc.nat(99),
  length: fc.integer({ min: 1, max: 4 }),
  isLeft: fc.boolean(),
});

t.test('a text that was copied from a file is anchored at exactly that text, or not at a line', async (t) => {
  const diff = repository.differ(t);
  const seen = { inline: 0, outside: 0, ambiguous: 0 };
  await fc.assert(
    fc.asyncProperty(change, fc.array(place, { minLength: 10, maxLength: 10 }), async ({ before, after }, places) => {
      const files = parseDiff(await diff(before, after));
      for (const { file: index, first, length, isLeft } of places) {
        const file = files[index % Math.max(1, files.length)];
        const whole = file && (isLeft ? before[oldNameOf(file)] : after[file.path]);
        if (!file || file.isBinary || !whole) continue;
        const lines = linesOf(whole).map(withoutReturn);
        const start = first % lines.length;
        const oldText = lines.slice(start, start + length).join('\n');
        if (oldText.trim() === '') continue;
        for (const hint of [undefined, start + 1]) {
          const result = anchorFinding(
            files,
            { path: file.path, oldText, side: isLeft ? 'LEFT' : 'RIGHT', ...(hint !== undefined && { line: hint }) },
            (name) => after[name] ?? null,
          );
          if ('error' in result) {
            if (result.error.code === 'pathNotInDiff') return false;
            seen.ambiguous += 1;
            continue;
          }
          const { anchor } = result;
          if (anchor.placement !== 'inline') {
            seen.outside += 1;
            continue;
          }
          seen.inline += 1;
          const from = anchor.startLine ?? anchor.line;
          const there = linesOf(whole)
            .slice(from - 1, anchor.line)
            .map(withoutReturn)
            .join('\n');
          // A line may hold the text as a part; a whole one that was given by its number is that one. The old file is not at
          // hand, so on its side indentation is not compared.
          if (!(isLeft ? isPart(unindented(there), unindented(oldText)) : isPart(there, oldText))) return false;
          const isShown = isInHunk(file, isLeft, start + 1, start + oldText.split('\n').length);
          if (hint !== undefined && isShown && from !== hint) return false;
        }
      }
      return true;
    }),
    { numRuns: 120 },
  );
  t.ok(seen.inline > 100, `inline ${seen.inline}, not at a line ${seen.outside}, errors ${seen.ambiguous}`);
});

const unindented = (text: string) =>
  text
    .split('\n')
    .map((each) => each.trim())
    .join('\n');
const isPart = (there: string, oldText: string) => there.trim().includes(oldText.trim());

function isInHunk(file: DiffFile, isLeft: boolean, first: number, last: number): boolean {
  return file.hunks.some(({ lines }) => {
    const shown = lines.flatMap((each) => (isLeft ? each.oldLine : each.newLine) ?? []);
    return shown.includes(first) && shown.includes(last);
  });
}

t.test('a suggestion leaves the file as `git apply` of the same change leaves it', async (t) => {
  const diff = repository.differ(t);
  let applied = 0;
  await fc.assert(
    fc.asyncProperty(
      change,
      place,
      fc.array(
        line.filter((each) => !each.includes('\r')),
        { maxLength: 3 },
      ),
      fc.boolean(),
      async ({ before, after }, { file: index, first, length }, fresh, hasLineEnds) => {
        const text = after;
        const unix = Object.fromEntries(Object.entries(text).map(([name, each]) => [name, each.replaceAll('\r', '')]));
        const files = parseDiff(await diff(before, unix)).filter((each) => each.status !== 'deleted' && !each.isBinary);
        const file = files[index % Math.max(1, files.length)];
        const head = file && unix[file.path];
        if (!file || !head) return true;
        const shown = file.hunks.flatMap(({ lines }) => lines.flatMap(({ newLine }) => newLine ?? []));
        const start = shown[first % Math.max(1, shown.length)];
        if (start === undefined) return true;
        const old = linesOf(head).slice(start - 1, start - 1 + length);
        if (old.join('').trim() === '') return true;
        // Without a line end behind it, an empty last line is one.
        const end = hasLineEnds || fresh.at(-1) === '' ? '\n' : '';
        const newText = fresh.length === 0 ? '' : fresh.join('\n') + end;
        const result = anchorFinding(
          files,
          { path: file.path, oldText: old.join('\n') + end, newText, line: start },
          () => head,
        );
        if ('error' in result || result.anchor.placement !== 'inline') return true;
        const { line: last, startLine = last, replacement } = result.anchor;
        if (startLine !== start || last !== start + old.length - 1) return true;
        // The change that changes nothing, and the single empty line, are not suggestions.
        if (replacement === undefined) return newText === old.join('\n') + end || fresh.join('') === '';
        applied += 1;
        return (
          asGitHub(head, startLine, last, replacement) === asGit(head, start, old, fresh.join('\n') === '' ? [] : fresh)
        );
      },
    ),
    { numRuns: 60 },
  );
  t.ok(applied > 5, `${applied} suggestions`);
});

/** Whole lines take the place of whole lines; nothing takes the place of them when there is no text. */
function asGitHub(head: string, first: number, last: number, replacement: string): string {
  const lines = linesOf(head);
  lines.splice(first - 1, last - first + 1, ...(replacement === '' ? [] : replacement.split('\n')));
  return lines.join('\n');
}

function asGit(head: string, start: number, old: readonly string[], fresh: readonly string[]): string {
  const ended = head.endsWith('\n') ? head : `${head}\n`;
  repository.write('file', ended);
  const to = fresh.length === 0 ? start - 1 : start;
  const patch = [
    ...['--- a/file', '+++ b/file', `@@ -${start},${old.length} +${to},${fresh.length} @@`],
    ...[...old.map((each) => `-${each}`), ...fresh.map((each) => `+${each}`), ''],
  ].join('\n');
  repository.git(['apply', '--unidiff-zero', '--whitespace=nowarn', '--allow-empty', '-'], patch);
  const file = join(repository.directory, 'file');
  return linesOf(readFileSync(file, 'utf8')).join('\n');
}

t.test('a diff that was mutated or cut off gives files or none, and never a line twice', async (t) => {
  const diffOf = repository.differ(t);
  const diffs: string[] = [];
  for (const { before, after } of fc.sample(change, { numRuns: 12, seed: 7 })) diffs.push(await diffOf(before, after));
  const whole = fc.constantFrom(...diffs);
  const damage = fc.array(
    fc.tuple(
      fc.constantFrom('cut', 'drop', 'insert', 'double'),
      fc.nat(),
      fc.oneof(
        line,
        fc.string(),
        fc.constantFrom('@@ -999999999999999999999 +1,9 @@', '+++ "b/\\', 'diff --git "a', '@@ -1,5 +1,5 @@'),
      ),
    ),
    { maxLength: 4 },
  );
  fc.assert(
    fc.property(whole, damage, (diff, damages) => {
      let text = diff;
      for (const [kind, seed, inserted] of damages) {
        const at = seed % Math.max(1, text.length);
        if (kind === 'cut') text = text.slice(0, at);
        else if (kind === 'drop') text = text.slice(0, at) + text.slice(at + 1 + (seed % 40));
        else if (kind === 'insert') text = `${text.slice(0, at)}\n${inserted}\n${text.slice(at)}`;
        else text = text.slice(0, at) + text;
      }
      return parseDiff(text).every(({ hunks }) =>
        hunks.every(({ lines, oldStart, newStart }) => {
          const olds = lines.flatMap(({ oldLine }) => oldLine ?? []);
          const news = lines.flatMap(({ newLine }) => newLine ?? []);
          return (
            olds.every((each, index) => each === oldStart + index) &&
            news.every((each, index) => each === newStart + index)
          );
        }),
      );
    }),
    { numRuns: 750 },
  );
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter, maxLength: 400 }), (text) => Array.isArray(parseDiff(text))),
    { numRuns: 500 },
  );
});

t.test('a hunk that was cut off has only the lines that are whole', async (t) => {
  const diff = await repository.differ(t)({ f: '1\n2\n3\n' }, { f: '1\ntwo\n3\n' });
  const lines = (text: string) => parseDiff(text)[0]?.hunks[0]?.lines.map((each) => each.text);
  t.strictSame(lines(diff), ['1', '2', 'two', '3']);
  t.strictSame(lines(diff.slice(0, diff.indexOf('+two') + 3)), ['1', '2'], 'within a line');
  t.strictSame(lines(diff.slice(0, diff.indexOf('+two') + 5)), ['1', '2', 'two'], 'behind a line feed');
  t.strictSame(lines(diff.trimEnd()), ['1', '2', 'two', '3'], 'GitHub leaves out the last line feed');
});

t.test('hostile shapes of a megabyte are read to their end', async (t) => {
  const million = 1_000_000;
  for (const text of [
    '@@ -1 +1 @@\n'.repeat(million / 12),
    `diff --git "${'\\"'.repeat(million / 2)}`,
    `diff --git a b\n+++ "${'é'.repeat(million)}"`,
    `diff --git a/x b/x\n@@ -1,999999999 +1,999999999 @@\n${'\n'.repeat(million)}`,
  ]) {
    t.ok(parseDiff(text).length <= 1);
  }
  const same = parseDiff(`diff --git a/x b/x\n@@ -0,0 +1,100000 @@\n${'+x\n'.repeat(100_000)}`);
  const oldText = `${'x\n'.repeat(9_000)}y`;
  t.match(
    anchorFinding(same, { path: 'x', oldText }, () => null),
    { error: { code: 'oldTextNotFound' } },
  );
});
