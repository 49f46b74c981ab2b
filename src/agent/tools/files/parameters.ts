/** Parameters of several file tools. Messages complete "<parameter> must be …". */
import * as v from 'valibot';

/** Other names of `path` that models write. */
export const pathAliases = ['file_path', 'file', 'filename', 'target_file', 'directory', 'dir'] as const;

const anyPath = v.pipe(v.string('a path'), v.nonEmpty('a path'));

/** A path, relative to the workspace or absolute, as the system prompt explains. */
export const path = (description?: string) =>
  description === undefined ? anyPath : v.pipe(anyPath, v.description(description));

/** A whole number from 1. */
export function positive(most: number, description?: string) {
  const range = most === Number.MAX_SAFE_INTEGER ? 'a whole number from 1' : `a whole number from 1 to ${most}`;
  const number = v.pipe(v.number(range), v.integer(range), v.minValue(1, range), v.maxValue(most, range));
  return description === undefined ? number : v.pipe(number, v.description(description));
}
