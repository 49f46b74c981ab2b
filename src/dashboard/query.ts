import * as v from 'valibot';
import { HttpError } from '../http/index.ts';

/** A whole number in a query, with bounds; `name` is for the message. */
export const wholeNumber = (min: number, max: number) => {
  const range = `a whole number from ${min} to ${max}`;
  return v.pipe(
    v.string(),
    v.regex(/^\d{1,16}$/, range),
    v.transform(Number),
    v.minValue(min, range),
    v.maxValue(max, range),
  );
};

/** `a,b`: names without blanks between them. */
export const names = <const T extends readonly string[]>(known: T) =>
  v.pipe(
    v.string(),
    v.transform((text) => text.split(',').filter((name) => name !== '')),
    v.array(v.picklist(known, `some of ${known.join(', ')}`)),
  );

/** A search text. */
export const searchText = v.pipe(v.string(), v.trim(), v.maxLength(1_000, 'at most 1000 characters'));
export const shortText = v.pipe(v.string(), v.maxLength(1_000, 'at most 1000 characters'));

/**
 * The parameters of a query as `schema` describes them. One that is empty counts as absent, one that the schema does not know
 * is ignored (it may be of a later version), one that is there twice is refused.
 *
 * @throws HttpError 400 `invalidRequest`; `details.issues` names each parameter and the expected value
 */
export function parseQuery<const S extends v.ObjectEntries>(
  query: URLSearchParams,
  entries: S,
): v.InferOutput<v.ObjectSchema<S, undefined>> {
  const given: Record<string, string> = {};
  for (const name of Object.keys(entries)) {
    const values = query.getAll(name);
    if (values.length > 1) throw refused([{ path: name, message: 'it is there more than once' }]);
    if (values[0] !== undefined && values[0] !== '') given[name] = values[0];
  }
  const result = v.safeParse(v.object(entries), given);
  if (result.success) return result.output;
  throw refused(
    result.issues.map((issue) => ({ path: v.getDotPath(issue)?.split('.')[0] ?? '', message: issue.message })),
  );
}

function refused(issues: readonly { readonly path: string; readonly message: string }[]): HttpError {
  const [first] = issues;
  return new HttpError(400, 'invalidRequest', `${first?.path ?? 'query'}: ${first?.message ?? 'invalid'}`, { issues });
}
