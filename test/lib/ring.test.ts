import fc from 'fast-check';
import t from 'tap';
import { Ring } from '../../src/lib/index.ts';

/** Items that a ring holds, computed from the list of all items. */
function model(pushed: readonly number[], maxItems: number, maxBytes: number): number[] {
  const held: number[] = [];
  for (const item of pushed) {
    held.push(item);
    while (held.length > maxItems || held.reduce((sum, bytes) => sum + bytes, 0) > maxBytes) held.shift();
  }
  return held;
}

const sizes = fc.array(fc.nat(20), { maxLength: 200 });
const anyMaxItems = fc.integer({ min: 1, max: 12 });

t.test('a ring holds the newest items within both bounds', async () => {
  fc.assert(
    fc.property(sizes, anyMaxItems, fc.nat(60), fc.nat(15), (pushed, maxItems, maxBytes, count) => {
      const dropped: number[] = [];
      const ring = new Ring<number>({
        maxItems,
        maxBytes,
        bytesOf: (item) => item,
        onDrop: (item) => dropped.push(item),
      });
      for (const item of pushed) ring.push(item);
      const held = model(pushed, maxItems, maxBytes);
      const expected = {
        items: held,
        newest: count === 0 ? [] : held.slice(-count),
        oldest: held[0],
        size: held.length,
        bytes: held.reduce((sum, bytes) => sum + bytes, 0),
        all: pushed,
        dropped: pushed.length - held.length,
      };
      const actual = {
        items: ring.last(),
        newest: ring.last(count),
        oldest: ring.oldest,
        size: ring.size,
        bytes: ring.bytes,
        all: [...dropped, ...ring.last()],
        dropped: ring.dropped,
      };
      return JSON.stringify(actual) === JSON.stringify(expected);
    }),
  );
});

t.test('an item larger than the bound on bytes is dropped with all before it', async (t) => {
  const ring = new Ring<string>({ maxItems: 10, maxBytes: 5, bytesOf: ({ length }) => length });
  ring.push('ab');
  ring.push('abcdef');
  t.strictSame(ring.last(), []);
  t.equal(ring.bytes, 0);
  ring.push('abc');
  t.strictSame(ring.last(), ['abc']);
});

t.test('only a full ring evicts its oldest item', async (t) => {
  const ring = new Ring<string>({ maxItems: 2 });
  t.equal(ring.takeIfFull(), undefined);
  ring.push('a');
  t.equal(ring.takeIfFull(), undefined);
  ring.push('b');
  t.equal(ring.takeIfFull(), 'a');
  t.strictSame([ring.last(), ring.size, ring.dropped], [['b'], 1, 1]);
  ring.push('c');
  t.strictSame([ring.last(), ring.dropped], [['b', 'c'], 1]);
});

t.test('a cleared ring is empty and usable, without a call of onDrop', async (t) => {
  const ring = new Ring<string>({ maxItems: 2, bytesOf: ({ length }) => length, onDrop: () => t.fail('dropped') });
  ring.push('a');
  ring.push('b');
  ring.clear();
  t.strictSame([ring.last(), ring.oldest, ring.size, ring.bytes, ring.dropped], [[], undefined, 0, 0, 0]);
  ring.push('c');
  t.strictSame(ring.last(), ['c']);
});

t.test('a bound below one item is refused', async (t) => {
  for (const maxItems of [0, -1, 1.5, Number.NaN]) t.throws(() => new Ring({ maxItems }), RangeError);
});
