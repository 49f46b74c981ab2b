import fc from 'fast-check';
import t from 'tap';
import { exponentialBackoffMs, type Jitter, jitters } from '../../src/lib/index.ts';

const anyJitter: fc.Arbitrary<Jitter> = fc.constantFrom(...Object.values(jitters));
const anyRandom = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const anyFailures = fc.nat(5_000);
const anyMs = fc.integer({ min: 1, max: 10_000_000 });

t.test('without jitter the pause doubles from the first to the cap', async (t) => {
  const backoff = { firstMs: 500, capMs: 3_000, jitter: jitters.none };
  t.strictSame(
    [0, 1, 2, 3, 4, 5_000].map((failures) => exponentialBackoffMs(failures, backoff, 0.3)),
    [500, 1_000, 2_000, 3_000, 3_000, 3_000],
  );
});

t.test('without a cap the pause stays a finite number of milliseconds', async (t) => {
  t.equal(exponentialBackoffMs(1_000_000, { firstMs: 1, jitter: jitters.none }, 0), 2 ** 30);
});

t.test('the pause is between both factors of its jitter', async () => {
  fc.assert(
    fc.property(anyFailures, anyMs, anyMs, anyJitter, anyRandom, (failures, firstMs, capMs, jitter, random) => {
      const full = exponentialBackoffMs(failures, { firstMs, capMs, jitter: jitters.none }, random);
      const pause = exponentialBackoffMs(failures, { firstMs, capMs, jitter }, random);
      return full <= capMs && pause >= full * jitter[0] && pause <= full * jitter[1];
    }),
  );
});

t.test('one more failure never shortens the pause', async () => {
  fc.assert(
    fc.property(anyFailures, anyMs, anyMs, anyJitter, anyRandom, (failures, firstMs, capMs, jitter, random) => {
      const backoff = { firstMs, capMs, jitter };
      return exponentialBackoffMs(failures, backoff, random) <= exponentialBackoffMs(failures + 1, backoff, random);
    }),
  );
});
