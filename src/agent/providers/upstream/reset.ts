import type { IncomingHttpHeaders } from 'node:http';
import { isRecord, type Json, wordOf } from './json.ts';
import { limitResetMs, milliseconds, retryAfterMs, statedWaitMs } from './retry.ts';
import { clockTimeIn, dayStart, durationIn } from './stated-time.ts';

/** A refusal because of a limit, as far as it may state when the limit is reset. */
export interface LimitRefusal {
  readonly headers: IncomingHttpHeaders;
  /** Object of the error in the body. */
  readonly error: Json;
  readonly message: string;
  /** Names of the exceeded quotas, from Google's `QuotaFailure`. */
  readonly quotas: readonly string[];
  /** The account is used up: headers about the rate of requests concern another limit. */
  readonly isUsedUp: boolean;
  /** Milliseconds since the epoch, by our clock. */
  readonly now: number;
}

/** Fields in which subscriptions state the reset of a limit, e.g. `usage_limit_reached` of ChatGPT. */
const timeFields = ['resets_at', 'reset_at', 'resetsAt'] as const;
const waitFields = ['resets_in_seconds', 'reset_after_seconds', 'resetsInSeconds'] as const;
/** Zone in which Google's days begin. */
const googleZone = 'America/Los_Angeles';

type Source = (refusal: LimitRefusal) => number | undefined;

/**
 * Sources of the time until a reset, in milliseconds; the first that states one counts. A date of the provider is compared with its
 * own clock.
 */
export const resetSources = {
  /** `retry-after-ms`; `retry-after` in seconds or as a date. */
  retryAfter: ({ headers, now }) => retryAfterMs(headers, now),
  /** `resets_in_seconds` and `resets_at` of the subscriptions of ChatGPT, codex and Claude. */
  subscription: ({ error, now }) => {
    const holders = [error, error['metadata'], error['details']].filter(isRecord);
    const [wait] = valuesOf(holders, waitFields).flatMap((value) => milliseconds(value, 1_000) ?? []);
    if (wait !== undefined) return wait;
    const [at] = valuesOf(holders, timeFields).flatMap((value) => timeOf(value) ?? []);
    return at === undefined ? undefined : at - now;
  },
  /**
   * Reset of a subscription's window: `anthropic-ratelimit-unified-reset`, else the later reset of the used-up ones among
   * `x-codex-primary-*` and `x-codex-secondary-*`.
   */
  window: ({ headers, now }) => {
    const at = timeOf(headers['anthropic-ratelimit-unified-reset']);
    if (at !== undefined) return at - now;
    const waits = ['primary', 'secondary'].flatMap((name) => windowWait(headers, `x-codex-${name}`, now) ?? []);
    return waits.length > 0 ? Math.max(...waits) : undefined;
  },
  /** A quota of a day at Google: it is reset at midnight in California, and its `RetryInfo` is that of another limit. */
  day: ({ quotas, now }) =>
    quotas.some((quota) => /perday/i.test(quota)) ? dayStart(now, googleZone) - now : undefined,
  /** `RetryInfo.retryDelay` of Google, and fields such as `retry_after` of other services. */
  stated: ({ error }) => statedWaitMs(error),
  /** `anthropic-ratelimit-*-reset`, `x-ratelimit-reset-*`, and others of this form. */
  limits: ({ headers, isUsedUp, now }) => (isUsedUp ? undefined : limitResetMs(headers, now)),
  /** Headers of this form inside of the error, where OpenRouter puts those of its limits. */
  passedOn: ({ error, now }) => {
    const { metadata } = error;
    return isRecord(metadata) && isRecord(metadata['headers'])
      ? limitResetMs(lowerCased(metadata['headers']), now)
      : undefined;
  },
  /** "Please try again in 20s." */
  duration: ({ message }) => durationIn(message),
  /** "Try again at 18:40." */
  time: ({ message, now }) => {
    const at = clockTimeIn(message, now);
    return at === undefined ? undefined : at - now;
  },
} as const satisfies Readonly<Record<string, Source>>;

/** Time until the reset of a used-up window, in milliseconds; undefined: the window has room, or states no reset. */
function windowWait(headers: IncomingHttpHeaders, prefix: string, now: number): number | undefined {
  if (!(Number(headers[`${prefix}-used-percent`]) >= 100)) return undefined;
  const wait = milliseconds(headers[`${prefix}-reset-after-seconds`], 1_000);
  if (wait !== undefined) return wait;
  const at = timeOf(headers[`${prefix}-reset-at`]);
  return at === undefined ? undefined : at - now;
}

/** Difference of two clocks that counts as an error of one of them, in milliseconds: `Date` has whole seconds, and answers take a while. */
const clockErrorMs = 60_000;

/** Present time by the clock of the sender, in milliseconds since the epoch; that of this machine unless the two differ. */
export function senderNow({ date = '' }: IncomingHttpHeaders, now: number): number {
  const theirs = Date.parse(date);
  return Math.abs(theirs - now) > clockErrorMs ? theirs : now;
}

/** Time until a limit is reset, in milliseconds, 0 for a reset in the past; undefined: the provider states none. */
export function resetMs(refusal: LimitRefusal): number | undefined {
  const asked = { ...refusal, now: senderNow(refusal.headers, refusal.now) };
  for (const source of Object.values<Source>(resetSources)) {
    const wait = source(asked);
    if (wait !== undefined && Number.isFinite(wait)) return Math.max(0, Math.ceil(wait));
  }
  return undefined;
}

const valuesOf = (holders: readonly Json[], fields: readonly string[]): readonly unknown[] =>
  holders.flatMap((holder) => fields.map((field) => holder[field]));

/** Numbers above this are milliseconds since the epoch, below it seconds. */
const secondsEnd = 100_000_000_000;

/** A time since the epoch in seconds or milliseconds, or a date with its zone. */
function timeOf(value: unknown): number | undefined {
  const number = milliseconds(value, 1);
  if (number !== undefined) return number < secondsEnd ? number * 1_000 : number;
  const text = wordOf(value) ?? '';
  const at = /^\d{4}-\d\d-\d\dT/.test(text) ? Date.parse(text) : Number.NaN;
  if (!Number.isNaN(at)) return at;
  return undefined;
}

function lowerCased(headers: Json): IncomingHttpHeaders {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      typeof value === 'string' || typeof value === 'number' ? [[name.toLowerCase(), String(value)]] : [],
    ),
  );
}
