/** Times of a host whose clock differs from the clock of this machine. */

/** Greatest difference that counts as none, in milliseconds: the answer that names the time takes a while to arrive. */
const toleratedMs = 5_000;

/** Names of fields with a time in ISO 8601, e.g. `nextAttemptAt`, `since` and `until`. */
const timeName = /(?:^at|[a-z]At|^since|^until)$/;
const isoTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/;

/** Milliseconds by which the clock of this machine is ahead of the remote one; 0 without a time, or for a small difference. */
export function clockOffset(remoteNow: string | undefined, now = Date.now()): number {
  const offset = now - Date.parse(remoteNow ?? '');
  return Math.abs(offset) > toleratedMs ? offset : 0;
}

/** Copy of a record with its times by the clock of this machine. @param value parsed JSON */
export function inLocalTime<T>(value: T, offsetMs: number): T {
  if (offsetMs === 0) return value;
  return JSON.parse(JSON.stringify(value), (name, each: unknown) => {
    if (typeof each !== 'string' || !timeName.test(name) || !isoTime.test(each)) return each;
    const local = new Date(Date.parse(each) + offsetMs);
    return Number.isNaN(local.getTime()) ? each : local.toISOString();
  });
}
