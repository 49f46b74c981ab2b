import t from 'tap';
import { longestFirst } from '../../scripts/test-order.ts';

t.test('files with known durations come first, the longest at the head, the others by name', async (t) => {
  t.strictSame(longestFirst(['d', 'a', 'c', 'b'], { a: 1, c: 5, gone: 9 }), ['c', 'a', 'b', 'd']);
});
