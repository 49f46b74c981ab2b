interface Asked<A, R> {
  readonly one: A;
  readonly resolve: (result: R) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Makes one call of those of one turn of the event loop.
 * @param most - of one call
 * @param work - answers each, in their order
 */
export function together<A, R>(
  most: number,
  work: (all: readonly A[]) => Promise<readonly R[]>,
): (one: A) => Promise<R> {
  let asked: Asked<A, R>[] = [];
  const run = async (all: readonly Asked<A, R>[]) => {
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
