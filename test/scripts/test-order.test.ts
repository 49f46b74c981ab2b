import t from 'tap';
import { coreShare, longestFirst } from '../../scripts/test-order.ts';

t.test('files of known work come first, the longest at the head, the others by name', async (t) => {
  const work = { a: { seconds: 1 }, c: { seconds: 5 }, gone: { seconds: 9 } };
  t.strictSame(longestFirst(['d', 'a', 'c', 'b'], work), ['c', 'a', 'b', 'd']);
});

t.test(
  'a file takes the share of a core that it does not wait, and all of it where its work is not known',
  async (t) => {
    t.equal(coreShare({ seconds: 160, cpuSeconds: 8 }), 0.05);
    t.equal(coreShare({ seconds: 4, cpuSeconds: 6 }), 1, 'with processes of its own on the other cores');
    t.equal(coreShare({ seconds: 4 }), 1);
    t.equal(coreShare({ seconds: 0, cpuSeconds: 0 }), 1);
    t.equal(coreShare(undefined), 1);
  },
);
