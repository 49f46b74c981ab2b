import type { IncomingHttpHeaders } from 'node:http';

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
