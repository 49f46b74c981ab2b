import fc from 'fast-check';
import t from 'tap';
import { Pump } from '../../src/lib/index.ts';

/** Pump whose runs are ended by the test. */
function stage() {
  const runs: PromiseWithResolvers<void>[] = [];
  const pump = new Pump(() => {
    const run = Promise.withResolvers<void>();
    runs.push(run);
    return run.promise;
  });
  return { pump, runs };
}

/** Lets all promise reactions that are due run. */
const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

t.test('a request begins a run at once, and resolves when it has ended', async (t) => {
  const { pump, runs } = stage();
  const request = pump.request();
  t.equal(runs.length, 1);
  t.equal(pump.isRunning, true);
  runs[0]?.resolve();
  await request;
  t.equal(pump.isRunning, false);
  await pump.idle();
});

t.test('requests during a run cause one more run, and resolve after it', async (t) => {
  const { pump, runs } = stage();
  const requests = [pump.request(), pump.request(), pump.request()];
  let isOver = false;
  void Promise.all(requests).then(() => {
    isOver = true;
  });
  t.equal(runs.length, 1);
  runs[0]?.resolve();
  await settle();
  t.equal(runs.length, 2);
  t.equal(isOver, false);
  runs[1]?.resolve();
  await settle();
  t.equal(runs.length, 2);
  t.equal(isOver, true);
});

t.test('a request in the reaction to the end begins a new run', async (t) => {
  const { pump, runs } = stage();
  const again = pump.request().then(() => pump.request());
  runs[0]?.resolve();
  await settle();
  t.equal(runs.length, 2);
  runs[1]?.resolve();
  await again;
});

t.test('a failed run rejects its requests, drops those made meanwhile, and leaves the pump usable', async (t) => {
  const { pump, runs } = stage();
  const requests = [pump.request(), pump.request()];
  runs[0]?.reject(new Error('no disk'));
  await pump.idle();
  for (const request of requests) await t.rejects(request, { message: 'no disk' });
  t.equal(runs.length, 1);
  const next = pump.request();
  t.equal(runs.length, 2);
  runs[1]?.resolve();
  await next;
});

t.test('work that throws synchronously rejects the request and leaves the pump usable', async (t) => {
  let count = 0;
  const pump = new Pump(() => {
    count += 1;
    if (count === 1) throw new Error('at once');
    return Promise.resolve();
  });
  await t.rejects(pump.request(), { message: 'at once' });
  await pump.request();
  t.equal(count, 2);
});

t.test('whenever requests arrive, a run begins after the last of them and no two runs overlap', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(3), { maxLength: 30 }), async (waits) => {
      let active = 0;
      let begun = 0;
      let requested = 0;
      const pump = new Pump(async () => {
        active += 1;
        t.equal(active, 1);
        begun = requested;
        await settle();
        active -= 1;
      });
      for (const wait of waits) {
        for (let turn = 0; turn < wait; turn += 1) await settle();
        requested += 1;
        void pump.request();
      }
      await pump.idle();
      return begun === requested;
    }),
  );
});
