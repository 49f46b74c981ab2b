import { ReviewStoreError } from './errors.ts';
import { limits } from './limits.ts';
import type { Page } from './types.ts';

/** Sort keys of the last row of a page. */
type Position = readonly number[];

const encode = (position: Position): string => Buffer.from(JSON.stringify(position)).toString('base64url');

/** Decodes a cursor. @throws ReviewStoreError invalidCursor, unless `encode` made the cursor with these names */
export function positionOf<const N extends readonly string[]>(
  cursor: string,
  names: N,
): { readonly [K in N[number]]: number } {
  const position = parsed(cursor);
  if (position?.length !== names.length || encode(position) !== cursor)
    throw new ReviewStoreError('invalidCursor', 'Invalid cursor: use the nextCursor of a page of this list');
  return Object.fromEntries(names.map((name, index) => [name, position[index]])) as { [K in N[number]]: number };
}

function parsed(cursor: string): number[] | undefined {
  try {
    const found: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    return Array.isArray(found) && found.every((each) => Number.isSafeInteger(each)) ? found : undefined;
  } catch {
    return undefined;
  }
}

/** Clamps the number of rows of a page to 1–`maxPage`. */
export const pageSize = (limit: number): number => Math.min(Math.max(Math.trunc(limit) || 1, 1), limits.maxPage);

/** Makes a page from its rows and, if another page follows, one more. */
export function pageOf<R, T>(
  found: readonly R[],
  limit: number,
  decode: (row: R) => T,
  position: (row: R) => Position,
): Page<T> {
  const rows = found.slice(0, pageSize(limit));
  const last = rows.at(-1);
  const isMore = found.length > rows.length && last !== undefined;
  return { rows: rows.map(decode), next: isMore ? encode(position(last)) : undefined };
}
