/** Readers of unknown JSON: on the hot path of a stream, where a schema for every chunk costs too much. */
export type Json = Readonly<Record<string, unknown>>;

export const isRecord = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A string, or a number as one, unless it is empty. */
export function wordOf(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Most tokens and most US dollars to accept for one answer, because a false number would use up every budget of the user. */
const believable = { tokens: 1_000_000_000, dollars: 10_000 };

const isBetween = (value: unknown, most: number): value is number =>
  typeof value === 'number' && value >= 0 && value <= most;

/** Token count, as a number or a string; undefined if it is implausible. */
export function countOf(value: unknown): number | undefined {
  const count = typeof value === 'string' && value !== '' ? Number(value) : value;
  return isBetween(count, believable.tokens) ? Math.round(count) : undefined;
}

/** Cost of one answer in US dollars; undefined if it is implausible. */
export const costOf = (value: unknown): number | undefined =>
  isBetween(value, believable.dollars) ? value : undefined;
