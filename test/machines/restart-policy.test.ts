import fc from 'fast-check';
import t from 'tap';
import {
  addFailure,
  backoffDelay,
  exceedsFailureLimit,
  nextRandom,
  type RestartPolicy,
  wantsRestart,
} from '../../machines/index.ts';

const policy: RestartPolicy = {
  restart: 'onFailure',
  maxRestarts: 5,
  withinMs: 120_000,
  backoffBaseMs: 500,
  backoffCapMs: 30_000,
  stableAfterMs: 30_000,
};

t.test('policy and exit decide about a restart', async (t) => {
  const exits = { success: 0, failure: 1, SIGINT: 130, SIGTERM: 143, 'a signal': null } as const;
  const restarts = {
    never: [],
    onFailure: ['failure', 'a signal'],
    always: ['success', 'failure', 'SIGINT', 'SIGTERM', 'a signal'],
  };
  for (const restart of ['never', 'onFailure', 'always'] as const) {
    for (const [name, code] of Object.entries(exits)) {
      const expected = restarts[restart].includes(name as never);
      t.equal(wantsRestart({ ...policy, restart }, code), expected, `${restart} after ${name} (${code})`);
    }
  }
});

t.test('a failure counts exactly until the end of the window', async (t) => {
  t.same(addFailure([], 10, 100), [10]);
  t.same(addFailure([10], 109, 100), [10, 109], 'one millisecond before the window ends');
  t.same(addFailure([10], 110, 100), [110], 'when it ends');
  t.same(addFailure([10, 50, 60], 155, 100), [60, 155], 'the oldest go first');
});

t.test('failures stay sorted and within the window for times in any order', async (t) => {
  const times = fc.array(fc.nat(1_000_000), { maxLength: 50 }).map((each) => each.sort((a, b) => a - b));
  fc.assert(
    fc.property(times, fc.integer({ min: 1, max: 200_000 }), (ascending, withinMs) => {
      let failures: readonly number[] = [];
      for (const at of ascending) {
        failures = addFailure(failures, at, withinMs);
        const expected = ascending.slice(0, ascending.lastIndexOf(at) + 1).filter((time) => time > at - withinMs);
        if (failures.at(-1) !== at || failures.length > expected.length) return false;
      }
      return failures.every((time, index) => index === 0 || time >= (failures[index - 1] ?? 0));
    }),
  );
  t.pass();
});

t.test('restarts end with one failure more than the limit', async (t) => {
  const failures = (count: number) => Array.from({ length: count }, (_, index) => index);
  t.equal(exceedsFailureLimit(failures(5), policy), false);
  t.equal(exceedsFailureLimit(failures(6), policy), true);
  t.equal(exceedsFailureLimit(failures(1), { ...policy, maxRestarts: 0 }), true);
  t.equal(exceedsFailureLimit([], { ...policy, maxRestarts: 0 }), false);
});

const anyPolicy = fc
  .record({ base: fc.integer({ min: 1, max: 10_000 }), cap: fc.integer({ min: 1, max: 600_000 }) })
  .map(({ base, cap }) => ({ ...policy, backoffBaseMs: base, backoffCapMs: Math.max(base, cap) }));
const anyDice = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const ceilingOf = (attempt: number, { backoffBaseMs, backoffCapMs }: RestartPolicy) =>
  Math.min(backoffCapMs, backoffBaseMs * 2 ** (attempt - 1));

t.test('the delay is within the upper half of its ceiling', async (t) => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5_000 }), anyPolicy, anyDice, (attempt, policy, random) => {
      const ceiling = ceilingOf(attempt, policy);
      const delay = backoffDelay(attempt, policy, random);
      return Number.isInteger(delay) && delay >= Math.floor(ceiling / 2) && delay <= ceiling;
    }),
  );
  t.pass();
});

t.test('ceilings double up to the cap', async (t) => {
  const highest = 1 - Number.EPSILON;
  t.same(
    [1, 2, 3, 4, 5, 6, 7, 8].map((attempt) => backoffDelay(attempt, policy, highest)),
    [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000],
  );
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 200 }), anyPolicy, anyDice, (attempt, policy, random) => {
      const delay = backoffDelay(attempt, policy, random);
      return delay <= backoffDelay(attempt + 1, policy, random) && delay <= policy.backoffCapMs;
    }),
  );
  t.equal(backoffDelay(1_000_000, policy, highest), policy.backoffCapMs, 'no overflow');
});

t.test('random numbers are in [0, 1), repeat for a seed, and are evenly distributed', async (t) => {
  fc.assert(
    fc.property(fc.integer(), (seed) => {
      const first = nextRandom(seed);
      const again = nextRandom(seed);
      return first.random >= 0 && first.random < 1 && first.random === again.random && first.seed === again.seed;
    }),
  );
  const bins = new Array<number>(10).fill(0);
  let seed = 42;
  for (let count = 0; count < 10_000; count++) {
    const rolled = nextRandom(seed);
    seed = rolled.seed;
    const bin = Math.floor(rolled.random * 10);
    bins[bin] = (bins[bin] ?? 0) + 1;
  }
  // Each bin expects 1000 ± 30: seven standard deviations leave no room for chance, the sequence being fixed anyway.
  for (const [index, count] of bins.entries()) t.ok(count > 790 && count < 1_210, `tenth ${index}: ${count}`);
  const neighbours = Array.from({ length: 100 }, (_, index) => Math.floor(nextRandom(index).random * 10));
  t.equal(new Set(neighbours).size, 10, 'workspaces with neighbouring seeds do not rise together');
});
