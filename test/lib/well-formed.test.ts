import fc from 'fast-check';
import t from 'tap';
import { strictJson, WellFormedStream, wellFormed, wellFormedJson } from '../../src/lib/index.ts';

const seed = process.env['ORATORIO_TEST_SEED'] === 'random' ? {} : { seed: 20_261_128 };

/** Text with lone halves of pairs, pairs, escapes that are written out, backslashes and NUL. */
const oddText = fc
  .array(fc.constantFrom('\ud83d', '\ude00', '😀', '\\', '\\ud83d', '\\u0000', '\0', 'a', 'é', '"', '\n'), {
    maxLength: 12,
  })
  .map((parts) => parts.join(''));
const oddValue = fc.jsonValue({ stringUnit: 'binary', maxDepth: 2 });

t.test('every JSON text with odd characters becomes one that strict readers accept', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(oddText, oddValue, fc.record({ text: oddText, list: fc.array(oddText) })),
      async (value) => {
        const repaired = JSON.stringify(JSON.parse(wellFormedJson(JSON.stringify(value))));
        return repaired === JSON.stringify(wellFormed(value)) && !/\\ud[89a-f]/.test(repaired.replaceAll('\\\\', ''));
      },
    ),
    { ...seed, numRuns: 500 },
  );
});

t.test('an escape of a lone half becomes U+FFFD, however it is written; a pair and a backslash stay', async (t) => {
  for (const [json, text] of [
    [String.raw`"a \ud83d b"`, 'a \ufffd b'],
    [String.raw`"a \uDE00 b"`, 'a \ufffd b'],
    [String.raw`"\uD83D\ude00"`, '😀'],
    [String.raw`"\ud83d\ud83d\ude00"`, '\ufffd😀'],
    [String.raw`"\\ud83d"`, String.raw`\ud83d`],
    [String.raw`"\\\ud83d"`, '\\\ufffd'],
    ['"\ud83d"', '\ufffd'],
  ] as const) {
    t.equal(JSON.parse(wellFormedJson(json)), text, json);
  }
  t.equal(wellFormedJson('{"cut":"\\ud83d'), '{"cut":"\\ufffd', 'text that is not JSON');
});

t.test('NUL is replaced where services refuse it, and not elsewhere', async (t) => {
  const json = JSON.stringify({ text: 'a\0b', written: '\\u0000' });
  t.same(JSON.parse(strictJson(json)), { text: 'a\ufffdb', written: '\\u0000' });
  t.equal(wellFormedJson(json), json);
});

t.test('well-formed values are returned themselves', async (t) => {
  const value = { text: 'a 😀', list: [1, null, { key: 'é' }] };
  t.equal(wellFormed(value), value);
  t.same(wellFormed({ '\ud83d': ['\ude00'] }), { '\ufffd': ['\ufffd'] });
});

t.test('text in pieces is the same as the whole text, however it is cut', async () => {
  await fc.assert(
    fc.asyncProperty(oddText, fc.array(fc.nat(20)), async (text, cuts) => {
      const places = [0, ...cuts.map((cut) => Math.min(cut, text.length)), text.length].sort((a, b) => a - b);
      const stream = new WellFormedStream();
      const pieces = places.slice(1).map((end, index) => stream.write(text.slice(places[index], end)));
      const all = [...pieces, stream.end()];
      return all.every((piece) => piece.isWellFormed()) && all.join('') === text.toWellFormed();
    }),
    { ...seed, numRuns: 500 },
  );
});
