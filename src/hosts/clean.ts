import { visible, withoutTokens } from '../lib/index.ts';

/** Nesting depth beyond which an answer is cut. Answers of a genuine Hub are less deep. */
const maxDepth = 16;

/**
 * Makes every text of a remote answer safe to show and removes tokens. Field names stay unchanged, because only known names are read.
 *
 * @param value parsed JSON
 */
export function clean<T>(value: T): T {
  return cleaned(value, 0) as T;
}

function cleaned(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return visible(withoutTokens(value));
  if (typeof value !== 'object' || value === null) return value;
  if (depth === maxDepth) return null;
  if (Array.isArray(value)) return value.map((each) => cleaned(each, depth + 1));
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, cleaned(each, depth + 1)]));
}
