import { setTimeout as pause } from 'node:timers/promises';
import { SourceError } from '../errors.ts';
import type { Target } from './target.ts';

/**
 * Makes something that an earlier attempt may have made: searches for it first, and again when an attempt leaves open whether it took
 * effect. Searches repeat after pauses, because GitHub's lists lag behind writes.
 *
 * @throws SourceError
 */
export async function lookThenMake<T>(
  { limits, wasTried }: Pick<Target, 'limits' | 'wasTried'>,
  find: () => Promise<T | undefined>,
  make: () => Promise<T>,
): Promise<T> {
  const found = wasTried ? await findPatiently(limits, find) : await find();
  if (found !== undefined) return found;
  try {
    return await make();
  } catch (error) {
    if (!(error instanceof SourceError) || !error.mayHaveHappened) throw error;
    const made = await findPatiently(limits, find);
    if (made === undefined) throw error;
    return made;
  }
}

/**
 * `lookThenMake` for a write that GitHub can carry out twice. After a request whose effect is unknown, the next attempt waits until
 * GitHub must have ended it. `removeDuplicates` removes the result of a request that takes effect even later.
 *
 * @throws SourceError with `retryAfterMs`
 */
export async function once<T>(
  target: Pick<Target, 'limits' | 'wasTried'>,
  find: () => Promise<T | undefined>,
  make: () => Promise<T>,
): Promise<T> {
  try {
    return await lookThenMake(target, find, make);
  } catch (error) {
    if (!(error instanceof SourceError) || !error.mayHaveHappened) throw error;
    const { code, message, status, retryAfterMs = 0 } = error;
    const { settleSeconds, secondMs } = target.limits;
    throw new SourceError(code, message, status, Math.max(retryAfterMs, settleSeconds * secondMs));
  }
}

/** Searches after each pause of `lookAfterSeconds`. @returns the first result; undefined when no search finds anything */
export async function findPatiently<T>(
  { lookAfterSeconds, secondMs }: Target['limits'],
  find: () => Promise<T | undefined>,
): Promise<T | undefined> {
  let found: T | undefined;
  for (const seconds of lookAfterSeconds) {
    await pause(seconds * secondMs);
    found = await find();
    if (found !== undefined) break;
  }
  return found;
}
