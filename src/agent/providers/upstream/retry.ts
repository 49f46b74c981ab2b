import type { IncomingHttpHeaders } from 'node:http';
import { isRecord, type Json } from './json.ts';

/** `Retry-After` in seconds or as a date (RFC 9110, section 10.2.3), and the exacter `retry-after-ms` of some upstreams, in milliseconds. */
export function retryAfterMs(headers: IncomingHttpHeaders, now: number): number | undefined {
  const exact = milliseconds(headers['retry-after-ms'], 1);
  if (exact !== undefined) return exact;
  const text = headers['retry-after'];
  const inSeconds = milliseconds(text, 1_000);
  if (inSeconds !== undefined) return inSeconds;
  const date = text === undefined ? Number.NaN : Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

/** Fields of an error in which services state a pause, with their unit in milliseconds. */
const waitFields: Readonly<Record<string, number>> = {
  retry_after_ms: 1,
  retryAfterMs: 1,
  retry_after: 1_000,
  retryAfter: 1_000,
  retry_after_seconds: 1_000,
};

/** Pause that an error itself asks for: Google's `RetryInfo` among its details, or a field of other services. */
export function statedWaitMs(error: Json): number | undefined {
  for (const holder of [error, error['metadata'], ...listIn(error['details'])]) {
    if (!isRecord(holder)) continue;
    const delay = durationMs(holder['retryDelay']);
    if (delay !== undefined) return delay;
    for (const [field, unit] of Object.entries(waitFields)) {
      const wait = milliseconds(holder[field], unit) ?? durationMs(holder[field]);
      if (wait !== undefined) return wait;
    }
  }
  return undefined;
}

const listIn = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/**
 * Headers that state when a limit is reset: `x-ratelimit-reset-requests` (OpenAI, Groq, Cerebras), `anthropic-ratelimit-tokens-reset`,
 * `x-ratelimit-reset` (OpenRouter, Together), `ratelimit-reset` (draft of the IETF), `ratelimitbysize-reset` (Mistral).
 */
const resetHeader = /^(?:x-|anthropic-)?ratelimit(?!-unified)(?:bysize)?(?:-[a-z-]+)?-reset(?:-[a-z-]+)?$/;

/** Time until the last reset of the limits that are used up; until the first one of all when no header names those. */
export function limitResetMs(headers: IncomingHttpHeaders, now: number): number | undefined {
  const used: number[] = [];
  const open: number[] = [];
  for (const [name, value] of Object.entries(headers)) {
    const wait = resetHeader.test(name) ? resetWaitMs(value, now) : undefined;
    if (wait === undefined) continue;
    const remaining = headers[name.replace('reset', 'remaining')];
    (Number(remaining ?? Number.NaN) <= 0 ? used : open).push(wait);
  }
  if (used.length > 0) return Math.max(...used);
  return open.length > 0 ? Math.min(...open) : undefined;
}

/** Numbers above this many seconds are a time since 1970. */
const longestSeconds = 1_000_000_000;

function resetWaitMs(value: string | string[] | undefined, now: number): number | undefined {
  const text = typeof value === 'string' ? value.trim() : '';
  const seconds = milliseconds(text, 1);
  if (seconds === undefined) {
    const date = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : Number.NaN;
    return Number.isNaN(date) ? durationMs(text) : Math.max(0, date - now);
  }
  if (seconds < longestSeconds) return milliseconds(text, 1_000);
  return Math.max(0, (seconds < longestSeconds * 1_000 ? seconds * 1_000 : seconds) - now);
}

const unitMs: Readonly<Record<string, number>> = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000, ms: 1 };

/** A time such as `45.8s`, `6m0s`, `120ms`; rounded up. */
function durationMs(value: unknown): number | undefined {
  if (typeof value !== 'string' || !/^(?:\d{1,9}(?:\.\d{1,12})?(?:ms|[dhms]))+$/.test(value)) return undefined;
  let sum = 0;
  for (const [, number, unit = ''] of value.matchAll(/(?<!\d)(\d+(?:\.\d+)?)(ms|[dhms])/g)) {
    sum += Number(number) * (unitMs[unit] ?? 0);
  }
  return Math.ceil(sum);
}

/** A number of a unit as milliseconds. */
export function milliseconds(value: unknown, unit: number): number | undefined {
  const text = typeof value === 'string' || typeof value === 'number' ? String(value).trim() : '';
  return /^\d{1,15}(\.\d+)?$/.test(text) ? Math.round(Number(text) * unit) : undefined;
}
