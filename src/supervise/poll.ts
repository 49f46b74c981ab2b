import { setTimeout as sleep } from 'node:timers/promises';
import { monotonicMs } from './clock.ts';

/** How long and how often to try. */
export interface PollOptions {
  readonly deadlineMs: number;
  /** First pause; each further one is half as long again, up to `maxEveryMs`. */
  readonly everyMs: number;
  readonly maxEveryMs?: number;
  readonly signal?: AbortSignal;
}

/** Result of polling. `last` is the last answer; undefined when the first probe did not end in time. */
export interface PollResult<T> {
  readonly ok: boolean;
  readonly last: T | undefined;
  readonly attempts: number;
  readonly elapsedMs: number;
}

/**
 * Repeats `probe` until it says `ok` or the deadline passes; answers at the deadline also when a probe hangs, whose
 * signal then aborts. Rejects with the reason when `signal` aborts, and with the probe's error when that throws.
 */
export async function pollUntil<T extends { readonly ok: boolean }>(
  probe: (signal: AbortSignal) => Promise<T>,
  { deadlineMs, everyMs, maxEveryMs = everyMs, signal }: PollOptions,
): Promise<PollResult<T>> {
  const began = monotonicMs();
  const ending = new AbortController();
  const deadline = setTimeout(() => ending.abort(), deadlineMs);
  const stop = signal ? AbortSignal.any([signal, ending.signal]) : ending.signal;
  let last: T | undefined;
  let attempts = 0;
  try {
    for (let pause = everyMs; !stop.aborted; pause = Math.min(pause * 1.5, maxEveryMs)) {
      attempts++;
      const answer = await untilAborted(probe(stop), stop);
      if (answer === undefined) break;
      last = answer;
      if (last.ok) break;
      await sleep(pause, undefined, { signal: stop }).catch(() => {});
    }
  } finally {
    clearTimeout(deadline);
    ending.abort();
  }
  signal?.throwIfAborted();
  return { ok: last?.ok === true, last, attempts, elapsedMs: monotonicMs() - began };
}

/** `work`, or `undefined` when the signal comes first; the later result of `work` is ignored. */
function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const give = () => resolve(undefined);
    signal.addEventListener('abort', give, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', give));
  });
}
