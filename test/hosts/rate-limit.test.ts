import t from 'tap';
import { RateLimit, Refresh } from '../../src/hosts/rate-limit.ts';

const { signal } = new AbortController();

async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}

t.test('regression: a long event is followed by a rest in proportion to its size, a short one by none', async (t) => {
  t.ok((await timeOf(() => new RateLimit(signal).next(100))) < 500);
  t.ok((await timeOf(() => new RateLimit(signal).next(6_000_000))) > 1_400);
});

t.test('regression: a long reading is followed by a rest in proportion to its length', async (t) => {
  const ended = new AbortController();
  const begun: number[] = [];
  const reading = new Refresh(async () => {
    begun.push(performance.now());
    if (begun.length === 2) ended.abort();
    else await new Promise((resolve) => setTimeout(resolve, 300));
  }, ended.signal);
  const done = reading.soon();
  void reading.soon();
  await done;
  t.ok((begun[1] ?? 0) - (begun[0] ?? 0) >= 1_200, 'the next reading waits');
});

t.test('a caller that waits for the current list gets a reading that began after the last event', async (t) => {
  const ended = new AbortController();
  const open: (() => void)[] = [];
  const reading = new Refresh(() => new Promise((resolve) => open.push(resolve)), ended.signal);
  t.equal(reading.current(), undefined, 'nothing to wait for');
  void reading.soon();
  let isCurrent = false;
  void reading.soon();
  const wait = reading.current()?.then(() => {
    isCurrent = true;
  });
  open.shift()?.();
  await new Promise((resolve) => setImmediate(resolve));
  t.equal(isCurrent, false, 'the first reading began before the second event');
  while (open.length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
  open.shift()?.();
  await wait;
  t.equal(reading.current(), undefined);
  ended.abort();
});
