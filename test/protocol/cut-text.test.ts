import t from 'tap';
import { cutText, firstWords } from '../../src/protocol/index.ts';

const family = '👩‍👩‍👧‍👦';

t.test('a cut divides no visible character, and keeps all that fits', async (t) => {
  t.equal(cutText('short', 5), 'short');
  t.equal(cutText('longer', 4), 'long');
  t.equal(cutText(`ab${family}cd`, 5), 'ab');
  t.equal(cutText(`ab${family}cd`, 2 + family.length), `ab${family}`);
  t.equal(cutText('e\u0301e\u0301', 3), 'e\u0301', 'a letter keeps its accent');
  t.equal(cutText(`${'x'.repeat(5_000)}${family}`, 5_003), 'x'.repeat(5_000));
  t.equal(cutText('😀😀', 3), '😀');
});

t.test('a mark stack without an end is cut at the limit', async (t) => {
  t.equal(cutText(`a${'\u0301'.repeat(500)}`, 300).length <= 300, true);
});

t.test('regression: the name of a conversation ends with a whole emoji', async (t) => {
  t.equal(firstWords(`${'x'.repeat(58)}${family} and more`), `${'x'.repeat(58)}…`);
});
