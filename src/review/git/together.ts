/** Like `Promise.all`, but rejects only when all of the work has ended. */
export async function together<T extends readonly unknown[]>(
  work: { readonly [K in keyof T]: Promise<T[K]> | T[K] },
): Promise<T> {
  const results = await Promise.allSettled(work);
  for (const result of results) if (result.status === 'rejected') throw result.reason;
  return (await Promise.all(work)) as unknown as T;
}
