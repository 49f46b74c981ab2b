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

/** Query of a list: the given parameters of the route and the number of rows. */
export interface ListQuery {
  readonly limit: number;
  readonly [name: string]: string | number | undefined;
}

/**
 * Parses the query of a route. An empty parameter counts as absent, an unknown one is ignored (it may belong to a later version), and
 * a repeated one is rejected.
 *
 * @throws HttpError 400 `invalidRequest`
 */
export function parseQuery(route: ReviewRoute, query: URLSearchParams): ListQuery {
  const given: Record<string, string> = {};
  for (const { name, values } of route.query ?? []) {
    const [value = '', ...more] = query.getAll(name);
    if (more.length > 0) throw refused(name, 'given more than once');
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

/** Renames the given parameters of a query to the filters of the store. */
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

/** Value of a path parameter, truncated: a longer value matches no id. */
export const pathValue = ({ params }: Pick<RequestContext, 'params'>, name: string): string =>
  (params[name] ?? '').slice(0, maxChars);

/** Version in `If-Match` (RFC 9110, section 13.1.1). @throws HttpError 428 without the header, 412 for another format */
export function wantedVersion(context: Pick<RequestContext, 'header'>): number {
  const given = context.header('if-match');
  if (given === undefined)
    throw apiError('versionRequired', 'If-Match is missing: send the ETag of the version you read.');
  const version = /^"(\d{1,15})"$/.exec(given.trim())?.[1];
  if (version === undefined) throw apiError('versionStale', 'Invalid If-Match: send the ETag of the version you read.');
  return Number(version);
}

export const etagOf = (version: number): readonly (readonly [string, string])[] => [['etag', `"${version}"`]];
