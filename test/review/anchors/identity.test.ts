/** Identity of findings: within one review, and across pushes. */
import fc from 'fast-check';
import t from 'tap';
import {
  areOneFinding,
  type FindingIdentity,
  isSameFinding,
  type KnownFinding,
  movedLines,
  parseDiff,
} from '../../../src/review/anchors/index.ts';
import { agreement } from '../../../src/review/anchors/titles.ts';
import { Repository } from './repository.ts';

const finding: FindingIdentity = {
  path: 'src/a.ts',
  side: 'RIGHT',
  lines: { first: 4, last: 4 },
  neighbours: { before: ['//onegoeson', '//onebegins'], after: ['//oneends'] },
  title: 'eval of user input in one',
  body: 'It runs code.',
  severity: 'major',
  oldText: '  return eval(input);',
};
const known: KnownFinding = { ...finding, place: 'present', isRefused: false };
const elsewhere = { lines: { first: 11, last: 11 }, neighbours: { before: ['//twobegins'], after: ['//twoends'] } };

t.test('titles agree when one only adds words, in any script', async (t) => {
  const same = [
    ['eval of user input', 'Eval of the user input in one'],
    ['Missing null check in parse', 'parse() has no null check'],
    ['Check of the length is missing', 'Length checks missing'],
    ['缺少空值检查', '缺少空值检查。'],
    ['入力値の長さを確認していない', '入力値の長さが確認していない'],
    ['Нет проверки длины', 'нет проверки длины!'],
    ['🔥', '🔥 '],
  ] as const;
  for (const [left, right] of same) t.ok(agreement(left, right) >= 0.7, `${left} | ${right}`);
  const other = [
    ['eval of user input in one', 'Missing length limit in one'],
    ['Missing length check on the user input', 'Missing type check on the user input'],
    ['入力値の長さを確認していない', '入力値の型を確認していない'],
    ['缺少空值检查', '缺少长度检查'],
    ['ไม่มีการตรวจสอบความยาว', 'ไม่มีการตรวจสอบชนิด'],
    ['입력 길이 검사 없음', '입력 형식 검사 없음'],
    ['🔥', '🐛'],
    ['', ''],
    ['\u200b', ''],
    ['', 'Missing check'],
  ] as const;
  for (const [left, right] of other) t.ok(agreement(left, right) < 0.5, `${left} | ${right}`);
});

t.test('agreement is symmetric, from 0 to 1, and 1 for equal visible titles', async (t) => {
  const title = fc.oneof(fc.string({ unit: 'grapheme' }), fc.lorem({ maxCount: 5 }));
  fc.assert(
    fc.property(title, title, (left, right) => {
      const value = agreement(left, right);
      const isEqual = /[\p{L}\p{N}]/u.test(left) ? agreement(left, left) === 1 : true;
      return value === agreement(right, left) && value >= 0 && value <= 1 && isEqual;
    }),
  );
  t.pass();
});

t.test('two findings of one review are one only with the same text, the same lines and a similar title', async (t) => {
  t.ok(areOneFinding(finding, { ...finding, title: 'eval of the user input', severity: 'critical' }));
  const others: Record<string, Partial<FindingIdentity>> = {
    title: { title: 'Missing length limit in one' },
    lines: { lines: { first: 11, last: 11 } },
    'more lines': { lines: { first: 3, last: 4 } },
    text: { oldText: 'eval(input)' },
    file: { path: 'src/b.ts' },
    side: { side: 'LEFT' },
    'Japanese title': { title: '入力値の型を確認していない' },
  };
  for (const [name, change] of Object.entries(others)) t.notOk(areOneFinding(finding, { ...finding, ...change }), name);
  const outside = { ...finding, lines: undefined, namedLine: 104 };
  t.ok(areOneFinding(outside, { ...outside }), 'outside of the diff');
  t.notOk(areOneFinding(outside, { ...outside, namedLine: 200 }), 'at another line outside of the diff');
  const nameless = { ...finding, title: '' };
  t.ok(areOneFinding(nameless, { ...nameless }), 'the body describes a finding without a title');
  t.notOk(areOneFinding(nameless, { ...nameless, body: 'Its length has no limit.' }));
});

t.test('a finding is known again when text and place agree and the problem is the same', async (t) => {
  const same: Record<string, readonly [Partial<FindingIdentity>, Partial<KnownFinding>]> = {
    unchanged: [{}, {}],
    indented: [{ oldText: 'return eval( input );' }, {}],
    'title with other words around it': [{ title: 'Unsafe eval of user input in one' }, {}],
    'moved, with a similar title': [{ oldText: 'return eval(text);' }, {}],
    'moved to another file': [{ path: 'lib/b.ts' }, { path: 'lib/b.ts' }],
    'one grade more severe': [{ severity: 'critical' }, {}],
    'commits cannot be compared': [{ lines: { first: 90, last: 90 } }, { place: 'unknown' }],
    'lines moved within the file': [{ lines: { first: 90, last: 90 } }, { place: 'gone' }],
    'file was split': [{ path: 'lib/b.ts' }, { place: 'gone' }],
    'whole file': [{ lines: undefined }, { lines: undefined }],
  };
  for (const [name, [mine, theirs]] of Object.entries(same))
    t.ok(isSameFinding({ ...finding, ...mine }, { ...known, ...theirs }), name);
  const other: Record<string, readonly [Partial<FindingIdentity>, Partial<KnownFinding>]> = {
    'same text in another function': [{ ...elsewhere, title: 'eval of user input in three' }, {}],
    'same text and title in another function': [elsewhere, {}],
    'the same without a comparison of the commits': [elsewhere, { place: 'unknown' }],
    'another problem of the same line': [{ title: 'Missing length limit in one' }, {}],
    'another problem of a text that changed': [{ title: 'Unused value', oldText: 'return eval(text);' }, {}],
    'another file': [{ path: 'src/b.ts' }, {}],
    'a removed line': [{ side: 'LEFT' }, {}],
    'two grades more severe': [{ severity: 'critical' }, { severity: 'minor' }],
    'more severe than the one a person skipped': [{ severity: 'major' }, { severity: 'note', isRefused: true }],
    'one grade more severe than the one a person dismissed': [
      { severity: 'critical' },
      { severity: 'major', isRefused: true },
    ],
    'a line, and a quoted text outside of the diff': [{}, { lines: undefined }],
  };
  for (const [name, [mine, theirs]] of Object.entries(other))
    t.notOk(isSameFinding({ ...finding, ...mine }, { ...known, ...theirs }), name);
});

t.test('an unchanged line is found at its present number in every form of the diff', async (t) => {
  const diff = new Repository(t.testdir()).differ(t);
  const lines = fc.uniqueArray(fc.integer({ min: 0, max: 400 }), { minLength: 1, maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(lines, lines, async (before, after) => {
      const text = (all: readonly number[]) => all.map((each) => `line ${each}\n`).join('');
      const [file] = parseDiff(await diff({ 'a.txt': text(before) }, { 'a.txt': text(after) }));
      if (!file) return true;
      const shown = new Map(file.hunks.flatMap((hunk) => hunk.lines.map((line) => [line.oldLine, line.kind] as const)));
      return before.every((each, index) => {
        if (shown.get(index + 1) === 'removed') return true;
        const found = movedLines(file, { first: index + 1, last: index + 1 });
        return found?.first === found?.last && after[(found?.first ?? 0) - 1] === each;
      });
    }),
    { numRuns: 25 },
  );
});
