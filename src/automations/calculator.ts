import { Cron } from 'croner';
import type { Due } from '../../machines/index.ts';
import type { StoredAutomation } from '../agent/index.ts';
import type { Schedule } from '../protocol/index.ts';

/** Due times of a schedule: pure arithmetic, nothing here reads a clock. Times are milliseconds since the epoch. */
export interface Calculator {
  readonly isRecurring: boolean;
  /** The first due time after `after`; null: never. */
  next(after: number): number | null;
}

/** Due times of a schedule and its anchor. */
export type Scheduled = Pick<StoredAutomation, 'schedule' | 'anchorAt'>;

/** Passed due times are counted up to this number. */
export const countedDues = 100;

/**
 * @throws Error for an expression that cannot be read; the message names the problem
 */
export function calculatorOf({ schedule, anchorAt }: Scheduled): Calculator {
  switch (schedule?.kind) {
    case undefined:
      return once(anchorAt);
    case 'at':
      return once(Date.parse(schedule.at));
    case 'every':
      return every(anchorAt + (schedule.initialDelayMs ?? schedule.everyMs), schedule.everyMs);
    case 'daily':
      return cron(expressionOf(schedule), schedule.timeZone);
    case 'cron':
      return cron(schedule.expression, schedule.timeZone);
  }
}

/** The due times from `first` (which is one) up to `now`, as one. */
export function passedDues(calculator: Calculator, first: number, now: number): Due {
  let scheduledFor = first;
  let count = 1;
  for (; count < countedDues; count += 1) {
    const next = calculator.next(scheduledFor);
    if (next === null || next > now) return { first, scheduledFor, count };
    scheduledFor = next;
  }
  return { first, scheduledFor: lastBefore(calculator, scheduledFor, now), count };
}

/** The next `count` due times after `after`. */
export function upcomingDues(calculator: Calculator, after: number, count: number): readonly number[] {
  const times: number[] = [];
  for (let next = calculator.next(after); next !== null && times.length < count; next = calculator.next(next)) {
    times.push(next);
  }
  return times;
}

/**
 * The last due time up to `now`, when `known` is one and there are too many to count: found by halving, for `next` never
 * goes back in time.
 */
function lastBefore({ next }: Calculator, known: number, now: number): number {
  let [last, low, high] = [known, known, now];
  while (low < high) {
    const middle = low + Math.ceil((high - low) / 2);
    const found = next(middle - 1);
    if (found !== null && found <= now) {
      last = Math.max(last, found);
      low = Math.max(middle, found);
    } else {
      high = middle - 1;
    }
  }
  return last;
}

const once = (at: number): Calculator => ({ isRecurring: false, next: (after) => (at > after ? at : null) });

/** Due times of an interval. They are anchored: a late run does not make the next one late. */
function every(first: number, everyMs: number): Calculator {
  return {
    isRecurring: true,
    next: (after) => (after < first ? first : first + (Math.floor((after - first) / everyMs) + 1) * everyMs),
  };
}

/**
 * `no-wildcard`: an expression that names its minutes and hours means times of the day. Each of them comes once on every
 * day, in spring when the gap ends, in autumn the first time. One with a wildcard or a step there means time that passes.
 */
function cron(expression: string, timeZone: string | undefined): Calculator {
  const job = new Cron(expression, {
    mode: '5-part',
    fixedTimeRule: 'no-wildcard',
    paused: true,
    ...(timeZone !== undefined && { timezone: timeZone }),
  });
  return { isRecurring: true, next: (after) => job.nextRun(new Date(after))?.getTime() ?? null };
}

/** `daily` as an expression. */
function expressionOf({ time }: Extract<Schedule, { readonly kind: 'daily' }>): string {
  const [hour, minute] = time.split(':').map(Number);
  return `${minute} ${hour} * * *`;
}
