interface PendingCall<A, R> {
  readonly one: A;
  readonly resolve: (result: R) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Combines the calls of one turn of the event loop into one.
 * @param most - maximum number of calls to combine
 * @param work - returns the results in the order of the calls
 */
export function batched<A, R>(
  most: number,
  work: (all: readonly A[]) => Promise<readonly R[]>,
): (one: A) => Promise<R> {
  let asked: PendingCall<A, R>[] = [];
  const run = async (all: readonly PendingCall<A, R>[]) => {
    try {
      const results = await work(all.map(({ one }) => one));
      for (const [index, { resolve }] of all.entries()) resolve(results[index] as R);
    } catch (error) {
      for (const { reject } of all) reject(error);
    }
  };
  const flush = () => {
    const all = asked;
    asked = [];
    if (all.length > 0) void run(all);
  };
  return (one) =>
    new Promise((resolve, reject) => {
      asked.push({ one, resolve, reject });
      if (asked.length === 1) setImmediate(flush);
      if (asked.length >= most) flush();
    });
}
