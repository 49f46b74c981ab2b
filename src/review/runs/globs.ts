/** Characters with a meaning in a regular expression. */
const special = /[.+^${}()|[\]\\]/g;

/**
 * Whether a name is meant by a pattern: `*` is any text without a slash, `**` any text, `?` one character. Not a pattern of
 * paths: a branch name is not normalised, and `..` means nothing in it.
 */
export function globMatches(pattern: string, name: string): boolean {
  const source = pattern
    .replace(special, '\\$&')
    .replace(/\*+|\?/g, (mark) => (mark === '?' ? '[^/]' : mark === '*' ? '[^/]*' : '.*'));
  return new RegExp(`^${source}$`, 's').test(name);
}
