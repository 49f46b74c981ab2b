import * as v from 'valibot';
import type { RequestContext } from '../../http/index.ts';
import { apiError } from './errors.ts';
import { limits } from './limits.ts';
import type { ReviewRoute } from './route-table.ts';

const range = `a whole number from 1 to ${limits.maxRowsPerPage}`;
const Limit = v.pipe(
  v.optional(v.pipe(v.string(), v.regex(/^\d{1,4}$/, range)), String(limits.rowsPerPage)),
  v.transform(Number),
  v.minValue(1, range),
  v.maxValue(limits.maxRowsPerPage, range),
);
const maxChars = 1_000;

/** The parameters a list is asked with: those of the route that are there, and how many rows. */
export interface ListQuery {
  readonly limit: number;
  readonly [name: string]: string | number | undefined;
}

/**
 * The query by the route's own table. A parameter that is empty counts as absent, one that the table does not know is ignored
 * (it may be of a later version), one that is there twice is refused.
 *
 * @throws HttpError 400 `invalidRequest`
 */
export function parseQuery(route: ReviewRoute, query: URLSearchParams): ListQuery {
  const given: Record<string, string> = {};
  for (const { name, values } of route.query ?? []) {
    const [value = '', ...more] = query.getAll(name);
    if (more.length > 0) throw refused(name, 'it is there more than once');
    if (value === '') continue;
    if (value.length > maxChars) throw refused(name, `at most ${maxChars} characters`);
    if (values && !values.includes(value)) throw refused(name, `one of ${values.join(', ')}`);
    given[name] = value;
  }
  const limit = v.safeParse(Limit, given['limit']);
  if (!limit.success) throw refused('limit', limit.issues[0].message);
  return { ...given, limit: limit.output };
}

const refused = (path: string, message: string) =>
  apiError('invalidRequest', `${path}: ${message}`, { issues: [{ path, message }] });

/** Only those parameters of a query that are there, by the names the store has for them. */
export function filterOf<const N extends string>(
  { limit, ...given }: ListQuery,
  names: Readonly<Record<string, N>>,
): { readonly limit: number } & Partial<Record<N, string>> {
  const filter: Partial<Record<N, string>> = {};
  for (const [name, key] of Object.entries(names)) {
    const value = given[name];
    if (typeof value === 'string') filter[key] = value;
  }
  return { limit, ...filter };
}

/** A value of the path. Too long for any id: there is no such thing. */
export const pathValue = ({ params }: Pick<RequestContext, 'params'>, name: string): string =>
  (params[name] ?? '').slice(0, maxChars);

/** The version that `If-Match` names (RFC 9110, section 13.1.1). @throws HttpError 428, 412 */
export function wantedVersion(context: Pick<RequestContext, 'header'>): number {
  const given = context.header('if-match');
  if (given === undefined) throw apiError('versionRequired', 'Say in If-Match which version you have looked at.');
  const version = /^"(\d{1,15})"$/.exec(given.trim())?.[1];
  if (version === undefined) throw apiError('versionStale', 'If-Match names no version that there has been.');
  return Number(version);
}

export const etagOf = (version: number): readonly (readonly [string, string])[] => [['etag', `"${version}"`]];
