import fc from 'fast-check';
import t from 'tap';
import {
  type Calculator,
  calculatorOf,
  countedDues,
  passedDues,
  upcomingDues,
} from '../../src/automations/calculator.ts';
import type { Schedule } from '../../src/protocol/index.ts';
import { dueByBruteForce } from './brute-force.ts';

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;
const at = (text: string): number => Date.parse(text);
const cron = (expression: string, timeZone: string): Calculator =>
  calculatorOf({ schedule: { kind: 'cron', expression, timeZone }, anchorAt: 0 });
const daily = (time: string, timeZone: string): Calculator =>
  calculatorOf({ schedule: { kind: 'daily', time, timeZone }, anchorAt: 0 });
const texts = (times: readonly number[]): string[] => times.map((time) => new Date(time).toISOString().slice(0, 16));
const upcoming = (calculator: Calculator, from: string, count: number): string[] =>
  texts(upcomingDues(calculator, at(from), count));

function dueBetween(calculator: Calculator, from: number, to: number): number[] {
  const times: number[] = [];
  for (let next = calculator.next(from - 1); next !== null && next < to; next = calculator.next(next)) times.push(next);
  return times;
}

t.test('intervals are counted from the anchor, so that a late run does not delay the next one', async (t) => {
  const schedule: Schedule = { kind: 'every', everyMs: 15 * minute };
  const every = calculatorOf({ schedule, anchorAt: at('2026-01-01T00:00:20Z') });
  t.equal(every.next(at('2026-01-01T00:00:20Z')), at('2026-01-01T00:15:20Z'), 'the first after one interval');
  t.equal(every.next(at('2026-01-01T00:15:19Z')), at('2026-01-01T00:15:20Z'));
  t.equal(every.next(at('2026-01-01T00:15:20Z')), at('2026-01-01T00:30:20Z'), 'strictly after');
  t.equal(every.next(at('2026-01-01T00:44:59Z')), at('2026-01-01T00:45:20Z'));
  t.equal(every.next(at('2025-01-01T00:00:00Z')), at('2026-01-01T00:15:20Z'), 'never before the first');
  const soon = calculatorOf({ schedule: { ...schedule, initialDelayMs: 0 }, anchorAt: 1_000 });
  t.same([soon.next(999), soon.next(1_000)], [1_000, 1_000 + 15 * minute]);
});

t.test('the next due time of an interval is the first on its grid', async (t) => {
  const grid = fc.record({
    everyMs: fc.integer({ min: minute, max: 400 * day }),
    initialDelayMs: fc.integer({ min: 0, max: day }),
    anchorAt: fc.integer({ min: 0, max: 2 ** 41 }),
    after: fc.integer({ min: 0, max: 2 ** 42 }),
  });
  fc.assert(
    fc.property(grid, ({ everyMs, initialDelayMs, anchorAt, after }) => {
      const next = calculatorOf({ schedule: { kind: 'every', everyMs, initialDelayMs }, anchorAt }).next(after);
      const first = anchorAt + initialDelayMs;
      t.ok(next !== null && next > after && (next - first) % everyMs === 0);
      t.ok(next !== null && (next === first || next - everyMs <= after), 'none was passed over');
    }),
  );
});

t.test('a one-off is due once', async (t) => {
  const once = calculatorOf({ schedule: { kind: 'at', at: '2026-12-24T18:00:00Z' }, anchorAt: 0 });
  t.equal(once.next(0), at('2026-12-24T18:00:00Z'));
  t.equal(once.next(at('2026-12-24T18:00:00Z')), null);
  const now = calculatorOf({ schedule: undefined, anchorAt: 5 });
  t.same([now.next(4), now.next(5)], [5, null]);
});

t.test('a time within the gap of summer time is due once, at the end of the gap', async (t) => {
  const gapEnd = '2026-03-29T01:00';
  t.same(upcoming(daily('02:30', 'Europe/Berlin'), '2026-03-28T12:00Z', 2), [gapEnd, '2026-03-30T00:30']);
  t.same(upcoming(cron('0,15,30 2 * * *', 'Europe/Berlin'), '2026-03-28T12:00Z', 2), [gapEnd, '2026-03-30T00:00']);
  t.same(upcoming(cron('0 2,3 * * *', 'Europe/Berlin'), '2026-03-28T12:00Z', 2), [gapEnd, '2026-03-30T00:00']);
  const lordHowe = upcoming(daily('02:15', 'Australia/Lord_Howe'), '2026-10-03T12:00Z', 2);
  t.same(lordHowe, ['2026-10-03T15:30', '2026-10-04T15:15'], 'a gap of half an hour');
});

t.test('an expression with a wildcard skips the gap of summer time', async (t) => {
  t.same(upcoming(cron('*/30 * * * *', 'Europe/Berlin'), '2026-03-29T00:10Z', 3), [
    '2026-03-29T00:30',
    '2026-03-29T01:00',
    '2026-03-29T01:30',
  ]);
  t.same(upcoming(cron('*/30 2 * * *', 'Europe/Berlin'), '2026-03-28T23:00Z', 1), ['2026-03-30T00:00'], 'no 2 o’clock');
});

t.test('a time that occurs twice in autumn is due the first time', async (t) => {
  t.same(upcoming(daily('02:30', 'Europe/Berlin'), '2026-10-24T12:00Z', 2), ['2026-10-25T00:30', '2026-10-26T01:30']);
  t.same(upcoming(daily('01:45', 'Australia/Lord_Howe'), '2026-04-04T12:00Z', 2), [
    '2026-04-04T14:45',
    '2026-04-05T15:15',
  ]);
  t.equal(
    dueBetween(cron('*/10 * * * *', 'Europe/Berlin'), at('2026-10-24T22:00Z'), at('2026-10-25T23:00Z')).length,
    150,
  );
});

t.test('a date that a zone skips has no due times', async (t) => {
  t.same(upcoming(daily('12:00', 'Pacific/Apia'), '2011-12-28T12:00Z', 3), [
    '2011-12-28T22:00',
    '2011-12-29T22:00',
    '2011-12-30T22:00',
  ]);
  t.same(upcoming(cron('0 12 30 12 *', 'Pacific/Apia'), '2011-12-01T00:00Z', 1), ['2012-12-29T22:00']);
});

t.test('the 29th of February is due in leap years only', async (t) => {
  t.same(upcoming(cron('0 0 29 2 *', 'UTC'), '2026-01-01T00:00Z', 3), [
    '2028-02-29T00:00',
    '2032-02-29T00:00',
    '2036-02-29T00:00',
  ]);
  t.same(upcoming(cron('0 12 29 2 *', 'UTC'), '2096-03-01T00:00Z', 1), ['2104-02-29T12:00'], '2100 has none');
});

t.test('a date that never occurs has no due time, and an invalid expression is refused', async (t) => {
  t.equal(cron('0 0 30 2 *', 'Europe/Berlin').next(at('2026-01-01T00:00Z')), null);
  for (const expression of [
    '',
    '* * * *',
    '0 0 0 * * *',
    '60 * * * *',
    '* 24 * * *',
    'every day',
    '@reboot',
    '5- * * * *',
  ]) {
    t.throws(() => cron(expression, 'UTC'), expression);
  }
  t.throws(() => cron('* * * * *', 'Mars/Olympus').next(0));
});

t.test('nicknames, the last day and the nth weekday of a month are understood', async (t) => {
  t.same(upcoming(cron('@daily', 'UTC'), '2026-01-01T12:00Z', 1), ['2026-01-02T00:00']);
  t.same(upcoming(cron('0 9 L * *', 'UTC'), '2026-02-01T12:00Z', 1), ['2026-02-28T09:00']);
  t.same(upcoming(cron('0 9 * * FRI#2', 'UTC'), '2026-02-01T12:00Z', 1), ['2026-02-13T09:00']);
  t.same(upcoming(cron('0 0 13 * 5', 'UTC'), '2026-01-01T12:00Z', 3), [
    '2026-01-02T00:00',
    '2026-01-09T00:00',
    '2026-01-13T00:00',
  ]);
});

/** Days around which clocks of these zones change, in some year; and some on which they do not. */
const moments = [
  ['Europe/Berlin', '2026-03-28', '2026-10-24', '2026-07-01'],
  ['Europe/Dublin', '2026-03-28', '2026-10-24'],
  ['America/New_York', '2026-03-07', '2026-10-31'],
  ['America/Havana', '2026-03-07', '2026-10-31'],
  ['America/Santiago', '2026-04-04', '2026-09-05'],
  ['America/St_Johns', '2026-03-07', '2026-10-31'],
  ['Africa/Cairo', '2026-04-23', '2026-10-29'],
  ['Australia/Lord_Howe', '2026-04-03', '2026-10-02'],
  ['Antarctica/Troll', '2026-03-28', '2026-10-24'],
  ['Pacific/Apia', '2011-12-28', '2011-09-23'],
  ['Asia/Kathmandu', '2026-01-31'],
  ['UTC', '2028-02-27'],
].flatMap(([zone = '', ...days]) => days.map((from) => ({ zone, from: at(`${from}T00:00Z`) })));

const number = (low: number, high: number) => fc.integer({ min: low, max: high }).map(String);
const list = (low: number, high: number) =>
  fc.uniqueArray(fc.integer({ min: low, max: high }), { minLength: 1, maxLength: 4 }).map((values) => values.join(','));
const range = (low: number, high: number) =>
  fc
    .tuple(fc.integer({ min: low, max: high }), fc.integer({ min: low, max: high }))
    .map(([one, other]) => (one <= other ? `${one}-${other}` : `${other}-${one}`));
const step = fc.constantFrom('*/2', '*/5', '*/7', '*/20');
const any = fc.constant('*');
const expressions = fc
  .tuple(
    fc.oneof(any, number(0, 59), list(0, 59), range(0, 59), step),
    fc.oneof(any, number(0, 4), list(0, 4), range(0, 23), fc.constant('*/2')),
    fc.oneof({ weight: 4, arbitrary: any }, { weight: 1, arbitrary: list(1, 31) }),
    fc.oneof({ weight: 6, arbitrary: any }, { weight: 1, arbitrary: list(1, 12) }),
    fc.oneof({ weight: 4, arbitrary: any }, { weight: 1, arbitrary: list(0, 6) }),
  )
  .map((fields) => fields.join(' '));

t.test('due times around any clock change equal those found by a check of every minute', async (t) => {
  const cases = fc.tuple(expressions, fc.constantFrom(...moments));
  fc.assert(
    fc.property(cases, ([expression, { zone, from }]) => {
      const to = from + 3 * day;
      t.same(
        texts(dueBetween(cron(expression, zone), from, to)),
        texts(dueByBruteForce(expression, zone, from, to)),
        `${expression} in ${zone} from ${texts([from])}`,
      );
    }),
    { numRuns: 36 },
  );
});

t.test('passed due times are combined into the last of them with their number', async (t) => {
  const hourly = cron('0 * * * *', 'UTC');
  const first = at('2026-01-01T09:00Z');
  t.same(passedDues(hourly, first, first), { first, scheduledFor: first, count: 1 });
  t.same(passedDues(hourly, first, first + 3 * hour + 1), { first, scheduledFor: first + 3 * hour, count: 4 });
  const far = passedDues(hourly, first, first + 400 * day + 5 * minute);
  t.same(
    far,
    { first, scheduledFor: first + 400 * day, count: countedDues },
    'counted so far, but the last is the last',
  );
  const once = calculatorOf({ schedule: undefined, anchorAt: first });
  t.same(passedDues(once, first, first + day), { first, scheduledFor: first, count: 1 });
});

t.test('the last due time is never after now, and the next one always is', async (t) => {
  const input = fc.tuple(expressions, fc.constantFrom(...moments), fc.integer({ min: 0, max: 2 * 365 * day }));
  fc.assert(
    fc.property(input, ([expression, { zone, from }, passed]) => {
      const calculator = cron(expression, zone);
      const first = calculator.next(from);
      if (first === null) return;
      const now = first + passed;
      const { scheduledFor, count } = passedDues(calculator, first, now);
      const next = calculator.next(scheduledFor);
      t.ok(scheduledFor >= first && scheduledFor <= now && count >= 1);
      t.ok(next === null || next > now, `${expression} in ${zone} from ${texts([first])} to ${texts([now])}`);
    }),
    { numRuns: 50 },
  );
});
