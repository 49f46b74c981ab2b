import { SourceError } from '../errors.ts';

/**
 * Writes once, whatever has happened before: looks for what an earlier attempt may have made, and again when an attempt
 * leaves open whether it has made anything. What is not found then is for a later attempt, which looks first again: GitHub
 * may still be at it.
 * @throws SourceError
 */
export async function once<T>(find: () => Promise<T | undefined>, make: () => Promise<T>): Promise<T> {
  const found = await find();
  if (found !== undefined) return found;
  try {
    return await make();
  } catch (error) {
    if (!(error instanceof SourceError) || !error.mayHaveHappened) throw error;
    const made = await find();
    if (made === undefined) throw error;
    return made;
  }
}
