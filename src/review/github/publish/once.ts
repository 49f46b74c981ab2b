import { setTimeout as pause } from 'node:timers/promises';
import { SourceError } from '../errors.ts';
import type { Target } from './target.ts';

/**
 * Writes once, whatever has happened before: looks for what an earlier attempt may have made, and again when an attempt
 * leaves open whether it has made anything. Both times it looks more than once, with pauses, because GitHub's lists lag behind
 * what was written. What is not found then is for a later attempt, which looks first again.
 * @throws SourceError
 */
export async function once<T>(
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

/** Looks again after pauses, until it finds something or has looked often enough. */
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
