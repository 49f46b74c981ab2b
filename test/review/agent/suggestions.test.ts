/** Suggestions, applied to the bytes of a file as GitHub applies them. */
import fc from 'fast-check';
import t from 'tap';
import { placeFindings } from '../../../src/review/agent/placing.ts';
import { parseDiff, replacementFor, type SuggestionObstacle } from '../../../src/review/anchors/index.ts';
import type { PreparedReview } from '../../../src/review/git/index.ts';
import { Repository } from '../anchors/repository.ts';

type Encoding = 'utf8' | 'bom' | 'latin1' | 'gbk' | 'utf16le';
const encoded: Readonly<Record<Encoding, (text: string) => Buffer>> = {
  utf8: (text) => Buffer.from(text),
  bom: (text) => Buffer.from(`\ufeff${text}`),
  latin1: (text) => Buffer.from(text.normalize('NFC'), 'latin1'),
  // 0xD6 0xD0 is 中.
  gbk: (text) => Buffer.from(text.replaceAll(/[^\n\r\t -~]/g, '\u00d6\u00d0'), 'latin1'),
  utf16le: (text) => Buffer.from(text, 'utf16le'),
};

interface File {
  readonly bytes: Buffer;
  readonly lines: readonly string[];
}
const word = fc.constantFrom('', 'int n;', 'Größe', 'gro\u0308\u00dfe', 'if (x) {', '日本', 'e\u0301 ', '\t', '  ');
const indent = fc.constantFrom('', '  ', '\t', '    ');
const file = (encoding: Encoding, ends: readonly string[]): fc.Arbitrary<File> =>
  fc
    .record({
      parts: fc.array(fc.tuple(indent, word, word, fc.constantFrom(...ends)), { minLength: 1, maxLength: 9 }),
      isOpen: fc.boolean(),
    })
    .map(({ parts, isOpen }) => {
      // Each line has a token that occurs once in the file.
      const lines = parts.map(([space, left, right], index) => `${space}${left}token${index};${right}`);
      const text = lines
        .map((line, index) => line + (isOpen && index === lines.length - 1 ? '' : parts[index]?.[3]))
        .join('');
      return { bytes: encoded[encoding](text), lines };
    });

/** A file whose only line can be copied in each way. */
const plainFile = (encoding: Encoding, ends: readonly string[]): File => ({
  bytes: encoded[encoding](`a token0;${ends[0]}`),
  lines: ['a token0;'],
});

const styles = {
  exact: (line: string) => line,
  composed: (line: string) => line.normalize('NFC'),
  trimmed: (line: string) => line.trimEnd(),
  bare: (line: string) => line.trim(),
  part: (line: string) => line,
};
const styleNames = Object.keys(styles) as (keyof typeof styles)[];
/** Lines that a model copies, its way of copying, and the word that it changes. */
const quoting = fc.record({
  first: fc.nat(),
  length: fc.integer({ min: 1, max: 3 }),
  changed: fc.nat(),
  style: fc.constantFrom(...styleNames),
});

function applied(bytes: Buffer, first: number, last: number, replacement: string): Buffer {
  const lines = bytes.toString('utf8').split('\n');
  lines.splice(first - 1, last - first + 1, ...(replacement === '' ? [] : replacement.split('\n')));
  return Buffer.from(lines.join('\n'));
}

const counts = new Map<string, number>();
const counted = (what: string) => counts.set(what, (counts.get(what) ?? 0) + 1);

t.test('a published suggestion changes the bytes of the changed word, and no others', async (t) => {
  const diff = new Repository(t.testdir()).differ(t);
  const kinds: readonly (readonly [Encoding, readonly string[]])[] = [
    ['utf8', ['\n']],
    ['utf8', ['\r\n']],
    ['utf8', ['\n', '\r\n', '\r']],
    ['bom', ['\n']],
    ['latin1', ['\n']],
    ['gbk', ['\n']],
    ['utf16le', ['\n']],
  ];
  for (const [encoding, ends] of kinds)
    await fc.assert(
      fc.asyncProperty(file(encoding, ends), quoting, async ({ bytes, lines }, { first, length, changed, style }) => {
        const diffFiles = parseDiff(await diff({}, { 'a.c': bytes }));
        const from = first % lines.length;
        const shown = bytes
          .toString('utf8')
          .replace(/^\ufeff/, '')
          .split(/\r\n|\n|\r/);
        const quoted = shown.slice(from, Math.min(from + length, lines.length)).map(styles[style]);
        const token = `token${from + (changed % quoted.length)};`;
        const oldText = style === 'part' ? token : quoted.join('\n');
        const newText = oldText.replace(token, 'other;');
        if (newText === oldText) return true;
        const [placed] = await placeFindings(
          {
            diffFiles,
            prepared: {
              readHeadFiles: async () => new Map([['a.c', bytes.toString('utf8')]]),
              readHeadBytes: async () => new Map([['a.c', bytes]]),
            } as unknown as PreparedReview,
          },
          [{ severity: 'major', title: 'Wrong', body: 'It is.', path: 'a.c', oldText, newText }],
        );
        if (placed?.anchor.placement !== 'inline' || placed.anchor.replacement === undefined) {
          counted(placed?.obstacle ?? 'notPlaced');
          return true;
        }
        counted(`${encoding} ${style}`);
        const { line, startLine = line, replacement } = placed.anchor;
        const wanted = Buffer.from(bytes.toString('latin1').replace(token, 'other;'), 'latin1');
        return applied(bytes, startLine, line, replacement).equals(wanted);
      }),
      {
        numRuns: 65,
        examples: styleNames.map((style) => [plainFile(encoding, ends), { first: 0, length: 1, changed: 0, style }]),
      },
    );
  for (const style of styleNames) t.ok((counts.get(`utf8 ${style}`) ?? 0) > 0, `positive control: ${style}`);
  t.notOk([...counts.keys()].some((key) => /^(?:bom|utf16le) /.test(key)));
  const obstacles: readonly SuggestionObstacle[] = [
    'notUtf8',
    'byteOrderMark',
    'carriageReturns',
    'noLineEnd',
    'unclear',
  ];
  for (const each of obstacles) t.ok((counts.get(each) ?? 0) > 0, each);
});

t.test('lines that the new text repeats keep their white space and composition', async (t) => {
  const lines = ['  a();  ', '  gro\u0308\u00dfe();', '  c();'];
  const oldText = 'a();\ngröße();\nc();';
  t.equal(replacementFor({ lines, oldText }, 'a();\ngröße();\nd();'), '  a();  \n  gro\u0308\u00dfe();\n  d();');
  t.equal(
    replacementFor({ lines, oldText }, 'a();\nnew();\ngröße();\nc();'),
    '  a();  \n  new();\n  gro\u0308\u00dfe();\n  c();',
  );
  t.equal(replacementFor({ lines, oldText }, 'b();\ngröße();\nc();'), null, 'the white space behind a changed line');
  t.equal(replacementFor({ lines, oldText }, 'a();\nc();'), null, 'a changed line in another composition');
  t.equal(replacementFor({ lines: ['x(a, old)'], oldText: 'old', at: 5 }, 'a'), 'x(a, a)');
});

t.test('a path in another Unicode composition is found, unless two files have such names', async (t) => {
  const diff = new Repository(t.testdir()).differ(t);
  const [composed, decomposed] = ['größe.c', 'größe.c'.normalize('NFD')];
  const place = async (names: readonly string[]) => {
    const tree = Object.fromEntries(names.map((name) => [name, 'int n;\n']));
    const prepared = { readHeadFiles: async () => new Map() } as unknown as PreparedReview;
    const asked = { severity: 'major', title: 'Wrong', body: 'It is.', path: composed, oldText: 'int n;' } as const;
    return (await placeFindings({ diffFiles: parseDiff(await diff({}, tree)), prepared }, [asked]))[0];
  };
  t.match(await place([decomposed]), { finding: { path: decomposed }, anchor: { placement: 'inline', line: 1 } });
  t.match(await place([decomposed, composed]), { finding: { path: composed }, anchor: { placement: 'inline' } });
  const twice = [decomposed, 'gro\u0308\u00dfe\u0301.c'];
  t.match(await place(twice), { finding: { path: decomposed } }, 'other names do not count');
  t.match(await place(['größe.h']), { anchor: { placement: 'summary' } });
});
