/** Asks at the first call, and gives everybody that answer, be it an error. */
export function once<T>(ask: () => T): () => T {
  let asked: { readonly answer: T } | { readonly error: unknown } | undefined;
  return () => {
    if (asked === undefined) {
      try {
        asked = { answer: ask() };
      } catch (error) {
        asked = { error };
      }
    }
    if ('error' in asked) throw asked.error;
    return asked.answer;
  };
}
