import type { IncomingHttpHeaders } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { exponentialBackoffMs, jitters } from '../../../lib/index.ts';
import { defaults } from '../../../protocol/index.ts';

const { backoffBaseMs: firstMs, backoffCapMs: capMs, retryAfterCapMs } = defaults.upstream;

/** Time and chance, so that tests can have their own. */
export interface RetryClock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** From 0 up to, not including, 1. */
  random(): number;
  /** Rejects as soon as `signal` aborts. */
  wait(ms: number, signal: AbortSignal): Promise<void>;
}

export const systemClock: RetryClock = {
  now: Date.now,
  random: Math.random,
  wait: (ms, signal) => sleep(ms, undefined, { signal }),
};

/**
 * Returns the pause before retry `attempt` + 1 (`attempt` counts from 0), in milliseconds: the pause the upstream asked
 * for, else back-off with full jitter. Undefined: the upstream asked for more than `retryAfterCapMs`.
 */
export function pauseBefore(attempt: number, asked: number | undefined, clock: RetryClock): number | undefined {
  if (asked === undefined)
    return Math.floor(exponentialBackoffMs(attempt, { firstMs, capMs, jitter: jitters.full }, clock.random()));
  return asked > retryAfterCapMs ? undefined : asked;
}

/** `Retry-After` in seconds or as a date (RFC 9110, section 10.2.3), and the exacter `retry-after-ms` of some upstreams, in milliseconds. */
export function retryAfterMs(headers: IncomingHttpHeaders, now: number): number | undefined {
  const exact = milliseconds(headers['retry-after-ms'], 1);
  if (exact !== undefined) return exact;
  const text = headers['retry-after'];
  const inSeconds = milliseconds(text, 1_000);
  if (inSeconds !== undefined || text === undefined) return inSeconds;
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

function milliseconds(header: string | string[] | undefined, unit: number): number | undefined {
  const text = typeof header === 'string' ? header.trim() : '';
  return /^\d{1,12}(\.\d+)?$/.test(text) ? Math.round(Number(text) * unit) : undefined;
}
