import t from 'tap';
import { Limit } from '../../src/lib/index.ts';

t.test('tasks of one key run in the order of arrival, and other keys do not wait for them', async (t) => {
  const limit = new Limit();
  const order: string[] = [];
  const release = await limit.enter('a');
  const tasks = [1, 2, 3].map((n) => limit.run('a', async () => order.push(`a${n}`)));
  await limit.run('b', async () => order.push('b'));
  t.equal(limit.waiting('a'), 3);
  release();
  await Promise.all(tasks);
  t.strictSame(order, ['b', 'a1', 'a2', 'a3']);
  t.equal(limit.waiting('a'), 0);
});

t.test('at most the given number of tasks runs at the same time, also after one that failed', async (t) => {
  const limit = new Limit(2);
  let running = 0;
  let most = 0;
  const tasks = Array.from({ length: 9 }, (_, n) =>
    limit.run('', async () => {
      running += 1;
      most = Math.max(most, running);
      await new Promise(setImmediate);
      running -= 1;
      if (n === 1) throw new Error('failed');
    }),
  );
  const results = await Promise.allSettled(tasks);
  t.equal(most, 2);
  t.strictSame(
    results.flatMap(({ status }, n) => (status === 'rejected' ? [n] : [])),
    [1],
  );
});

t.test('a task whose signal aborts leaves the line, and the next one gets its place', async (t) => {
  const limit = new Limit();
  const release = await limit.enter('');
  const abort = new AbortController();
  const given = limit.enter('', abort.signal);
  const next = limit.enter('');
  abort.abort(new Error('given up'));
  await t.rejects(given, { message: 'given up' });
  release();
  (await next)();
  t.equal(limit.waiting(''), 0);
});
