import t from 'tap';
import { collectAfterStarts, optimiseUnderLoad } from '../../src/hub/engine.ts';

t.test('optimisation is turned on once, by many requests within a second', async (t) => {
  let turnedOn = 0;
  let now = 0;
  const note = optimiseUnderLoad(
    () => {
      turnedOn += 1;
    },
    () => now,
  );
  for (let request = 0; request < 5_000; request += 1) {
    now += 2;
    note();
  }
  t.equal(turnedOn, 0, 'five hundred a second are few');
  for (let request = 0; request < 5_000; request += 1) {
    now += 0.5;
    note();
  }
  t.equal(turnedOn, 1);
});

t.test('garbage is collected once after many starts, and not after a few', async (t) => {
  let collections = 0;
  const collected = Promise.withResolvers<void>();
  const note = collectAfterStarts(() => {
    collections += 1;
    collected.resolve();
  }, 1);
  const awake = setInterval(() => {}, 1_000);
  for (let start = 0; start < 9; start += 1) note();
  t.equal(collections, 0);
  for (let start = 0; start < 9; start += 1) note();
  t.equal(collections, 0, 'it waits for a pause');
  await collected.promise;
  clearInterval(awake);
  t.equal(collections, 1);
});
