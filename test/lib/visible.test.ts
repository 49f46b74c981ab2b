import fc from 'fast-check';
import t from 'tap';
import { VisibleStream, visible } from '../../src/lib/index.ts';
import { anyCharacter } from '../any-character.ts';

const dangerous = /[\p{Cc}\p{Cs}\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/u;
const character = fc.oneof(
  fc.constantFrom(
    ...'ab>1\n\t\u001b\u009b\u202e\u200d\u200c\ufe0f\u034f\u{e0041}\u{e007f}\u{1f3f4}👩é世\u180b\u3164\ud83d\udc69',
  ),
  fc.string({ unit: anyCharacter, minLength: 1, maxLength: 1 }),
);
const text = fc.array(character, { maxLength: 30 }).map((parts) => parts.join(''));

t.test('a character that acts on a terminal or hides is spelled out', async (t) => {
  t.equal(visible('\u001b[2K\u001b]0;x\u0007\r\u007f'), '␛[2K␛]0;x␇␍␡');
  t.equal(visible('\u009b2J \u0085'), '\\x9b2J \\x85');
  t.equal(visible('a\u202eb\u2066c\u200ed\u061ce'), 'a<U+202E>b<U+2066>c<U+200E>d<U+061C>e');
  t.equal(visible('a\u200bb\u2028c\ufeffd\u{e0041}'), 'a<U+200B>b<U+2028>c<U+FEFF>d<U+E0041>');
  t.equal(
    visible('r\u200dm \u3164 \ud800'),
    'r<U+200D>m <U+3164> <U+D800>',
    'a joiner between ASCII letters has no use',
  );
  t.equal(visible('a\n\tb'), 'a\n\tb');
  t.equal(visible('a\n\tb', { multiline: false }), 'a␊␉b');
});

t.test(
  'regression: H51 strict text has no character without a glyph, and no stack of marks over its neighbours',
  async (t) => {
    const strict = (text: string) => visible(text, { strict: true });
    const empty = [
      '\u034f',
      '\ufe0f',
      '\u17b4',
      '\u180b',
      '\u2800',
      '\u3164',
      '\u200d',
      '\u{1d159}',
      '\u{13441}',
      '\u{e0041}',
    ];
    for (const character of empty) t.match(strict(`a${character}b`), /^a<U\+[0-9A-F]+>b$/);
    t.equal(strict('e\u0301 ที่นี่ क्षि'), 'e\u0301 ที่นี่ क्षि', 'positive control');
    t.equal(strict(`e${'\u0301'.repeat(40)}`), `e${'\u0301'.repeat(4)}${'<U+0301>'.repeat(36)}`);
  },
);

t.test('ordinary Unicode stays unchanged', async (t) => {
  const samples = [
    '👨‍👩‍👧',
    '❤️‍🔥',
    '👩🏽‍🚀',
    '1️⃣',
    '🏴󠁧󠁢󠁥󠁮󠁧󠁿',
    '🇩🇪',
    'e\u0301',
    'שלום',
    'می‌خواهم',
    'क्‍ष',
    '한글',
    '葛󠄀',
    'Grüße, “世界”',
  ];
  for (const sample of samples) t.equal(visible(sample), sample);
});

t.test('visible text is free of dangerous characters and stays the same when made visible again', async () => {
  fc.assert(
    fc.property(text, (text) => {
      const shown = visible(text);
      return visible(shown) === shown && !dangerous.test(shown.replace(/[\n\t]/g, ''));
    }),
    { numRuns: 10_000 },
  );
});

t.test('text in pieces, cut anywhere, becomes the same as in one piece', async () => {
  fc.assert(
    fc.property(fc.array(text), fc.array(fc.nat(400)), (texts, cuts) => {
      const whole = texts.join('');
      const edges = [0, ...cuts.map((at) => Math.min(at, whole.length)).sort((a, b) => a - b), whole.length];
      const stream = new VisibleStream();
      const pieces = edges.slice(1).map((end, index) => stream.write(whole.slice(edges[index], end)));
      return pieces.join('') + stream.end() === visible(whole);
    }),
    { numRuns: 5000 },
  );
});
