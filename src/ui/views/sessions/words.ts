import { dollars, price } from '../../../lib/browser.ts';
import { threadName } from '../../../protocol/browser.ts';
import type { DashboardSession } from '../../../protocol/index.ts';
import { duration } from '../../parts/format.ts';
import { dayTime, zone } from '../../parts/time.ts';
import type { Shape, Tone } from '../../parts/tone.ts';

const grouped = new Intl.NumberFormat('en', { useGrouping: true });
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

/** `12 345`, with blanks that do not break. */
export const amount = (value: number): string => grouped.format(value).replaceAll(',', ' ');

/** `12.3K`: where the exact number is in a title. */
export const roughly = (value: number): string => compact.format(value);

/** Cost of requests; some of them may have no known price. */
export function costOf({
  costUsd,
  unpricedCount,
  totalTokens,
}: Pick<DashboardSession, 'costUsd' | 'unpricedCount' | 'totalTokens'>): string {
  if (costUsd === 0) return unpricedCount > 0 ? 'price unknown' : totalTokens > 0 ? price(0) : '–';
  return unpricedCount > 0 ? `at least ${dollars(costUsd)}` : dollars(costUsd);
}

/** `1 turn`, `3 turns`. */
export const counted = (value: number, one: string, many = `${one}s`): string =>
  `${amount(value)} ${value === 1 ? one : many}`;

/** A length of time in three digits: `842 ms`, `1.24 s`, `12.4 s`, `3 m 08 s`. */
export function span(milliseconds: number): string {
  if (milliseconds < 1_000 || milliseconds >= 60_000) return duration(milliseconds);
  return `${(milliseconds / 1000).toFixed(milliseconds < 10_000 ? 2 : 1)} s`;
}

const zoneName = zone();
/** A moment in full, in local time and in UTC, for titles. Fast enough for every row of a list. */
export const moment = (at: number): string => `${dayTime(at)} (${zoneName})\n${new Date(at).toISOString()}`;

/** Text of an unknown number, which differs from zero. */
export const notReported = 'not reported';

/** Name of a session for people. */
export const titleOf = (session: Pick<DashboardSession, 'displayName' | 'firstInput'>): string => threadName(session);

/** State of a session: word, colour and shape. */
export function stateOf(session: DashboardSession): {
  readonly word: string;
  readonly tone: Tone;
  readonly shape: Shape;
} {
  if (session.lastStatus === 'waitingApproval') return { word: 'Waiting for you', tone: 'warn', shape: 'triangle' };
  if (session.isRunning) return { word: 'Running', tone: 'progress', shape: 'arc' };
  const known = session.lastStatus === undefined ? undefined : states[session.lastStatus];
  return known ?? { word: session.turnCount === 0 ? 'New' : 'Idle', tone: 'neutral', shape: 'ring' };
}

const states: Readonly<Record<string, ReturnType<typeof stateOf>>> = {
  completed: { word: 'Completed', tone: 'ok', shape: 'disc' },
  failed: { word: 'Failed', tone: 'danger', shape: 'cross' },
  cancelled: { word: 'Cancelled', tone: 'neutral', shape: 'square' },
  interrupted: { word: 'Interrupted', tone: 'neutral', shape: 'square' },
};
