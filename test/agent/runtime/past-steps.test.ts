import t from 'tap';
import { type PastStep, PastSteps, stepsOf } from '../../../src/agent/runtime/past-steps.ts';

const inside = ['working', 'working.requesting', 'working.requesting.inferring'];
const step = (number: number, from: readonly string[], to: readonly string[]): PastStep => ({
  ...{ step: number, at: new Date(1_000 + number), event: `EVENT.${number}`, from, to },
});

t.test('stored transitions are read with their times, events and states', (t) => {
  const steps = [step(1, [], ['beginning']), step(2, ['beginning'], inside), step(3, inside, ['storing'])];
  const past = new PastSteps();
  past.add(steps.slice(0, 2));
  t.equal(past.last, 2);
  past.add(steps.slice(2));
  t.same(stepsOf(JSON.parse(JSON.stringify(past.record))), steps);
  const next = new PastSteps(stepsOf(past.record));
  t.equal(next.last, 3);
  next.add([step(4, ['storing'], ['beginning'])]);
  t.same(
    stepsOf(next.record).map(({ event }) => event),
    ['EVENT.1', 'EVENT.2', 'EVENT.3', 'EVENT.4'],
  );
  t.end();
});

t.test('the latest 200 transitions take at most 4 KiB', (t) => {
  const past = new PastSteps();
  const names = ['checking', 'inferring', 'reviewing', 'securing', 'runningTools'].map((name) => [
    ...['working', 'working.requesting', `working.requesting.${name}`],
  ]);
  for (let number = 1; number <= 1_000; number += 1)
    past.add([{ ...step(number, [], names[number % 5] ?? []), event: `done(${number % 7})` }]);
  const { record } = past;
  t.equal(record.steps.length, 200);
  t.ok(JSON.stringify(record).length < 4_096, `${JSON.stringify(record).length} characters`);
  t.equal(stepsOf(record).at(-1)?.event, `done(${1_000 % 7})`);
  t.end();
});

t.test('positions without a name are read as empty', (t) => {
  t.match(stepsOf({ firstAt: 0, names: [], steps: [[5, 1, -1]] }), [{ at: new Date(5), event: '', to: [''] }]);
  t.end();
});
