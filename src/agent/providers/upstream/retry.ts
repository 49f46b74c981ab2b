import type { IncomingHttpHeaders } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { defaults } from '../../../protocol/index.ts';

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
 * How long to wait before try number `attempt` + 1 (`attempt` counts from 0), in milliseconds: what the upstream asked for,
 * else a random part of a bound that doubles ("full jitter"). Undefined: it asked for longer than anybody would wait.
 */
export function pauseBefore(attempt: number, asked: number | undefined, clock: RetryClock): number | undefined {
  if (asked === undefined) {
    return Math.floor(
      clock.random() * Math.min(defaults.upstream.backoffCapMs, defaults.upstream.backoffBaseMs * 2 ** attempt),
    );
  }
  return asked > defaults.upstream.retryAfterCapMs ? undefined : asked;
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
