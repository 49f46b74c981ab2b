/**
 * Paths are bytes, written as texts with one character a byte: names that are not UTF-8 stay unchanged, ASCII looks as usual.
 * Relative to the root of the tree, with `/`; the root itself is the empty text.
 */
export type BytePath = string;

/** Whether a text is the same in every encoding. */
export const isAscii = (text: string): boolean => {
  for (let at = 0; at < text.length; at += 1) if (text.charCodeAt(at) > 0x7f) return false;
  return true;
};

/** Bytes for system calls. */
export const systemPath = (path: BytePath): string | Buffer => (isAscii(path) ? path : Buffer.from(path, 'latin1'));

/** Path for people and JSON; bytes that are not UTF-8 become U+FFFD. */
export const shownPath = (path: BytePath): string => (isAscii(path) ? path : Buffer.from(path, 'latin1').toString());

/** @param text path in the form for people and JSON */
export const bytePath = (text: string): BytePath => (isAscii(text) ? text : Buffer.from(text).toString('latin1'));

export const childOf = (directory: BytePath, name: BytePath): BytePath =>
  directory === '' ? name : `${directory}/${name}`;

/** Directory of an entry; undefined for the root. */
export function parentOf(path: BytePath): BytePath | undefined {
  if (path === '') return undefined;
  const at = path.lastIndexOf('/');
  return at === -1 ? '' : path.slice(0, at);
}

export const nameOf = (path: BytePath): BytePath => path.slice(path.lastIndexOf('/') + 1);

/** Whether `path` is `directory` or in it. */
export const isWithin = (directory: BytePath, path: BytePath): boolean =>
  directory === '' || path === directory || path.startsWith(`${directory}/`);

/** Path of the repository in which an entry lies; undefined: in none. */
export const repositoryOf = (path: BytePath): BytePath | undefined => /^(?:.*?\/)?\.git(?=\/|$)/s.exec(path)?.[0];

/** Whether an entry is the `.git` of a repository, or in it. */
export const isOfRepository = (path: BytePath): boolean => repositoryOf(path) !== undefined;

export const depthOf = (path: BytePath): number => (path === '' ? 0 : path.split('/').length);
