import { WebError } from './errors.ts';

/**
 * Runs `work` with a signal that aborts when `outer` does, or after `ms` with a `WebError` about the timeout. Nothing is left
 * when it settles; `work` has to end soon after the signal.
 * @throws any error of `work`; the reason of the signal when that has aborted
 */
export async function withDeadline<T>(
  outer: AbortSignal,
  ms: number,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  outer.throwIfAborted();
  const controller = new AbortController();
  const abort = (): void => controller.abort(outer.reason);
  const timer = setTimeout(() => controller.abort(new WebError(`it took longer than ${ms} ms`)), ms);
  outer.addEventListener('abort', abort, { once: true });
  try {
    return await work(controller.signal);
  } catch (error) {
    throw controller.signal.aborted ? controller.signal.reason : error;
  } finally {
    clearTimeout(timer);
    outer.removeEventListener('abort', abort);
  }
}

/** `promise`, or the reason of `signal` when that aborts first. The promise itself continues, ignored. */
export function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}
