/** The last change that waits or works, by real path of the file. */
const tails = new Map<string, Promise<unknown>>();

/**
 * Runs the changes of one file in this process one after the other: a second edit reads the result of the first.
 *
 * @param path real
 */
export async function withFileLock<T>(path: string, change: () => Promise<T>): Promise<T> {
  const before = tails.get(path);
  // The outcome of the change before went to its own caller.
  const mine = before ? before.then(change, change) : change();
  tails.set(path, mine);
  try {
    return await mine;
  } finally {
    if (tails.get(path) === mine) tails.delete(path);
  }
}
