/** Reasons why an entry is in no checkpoint, in words that complete "it is …". No schema: the page has them, too. */
export const uncoveredWords: Readonly<Record<string, string>> = {
  tooLarge: 'too large',
  ignoredTooLarge: 'ignored by git, and too large',
  unreadable: 'not readable',
  special: 'not a file, directory or link',
  otherFileSystem: 'on another file system',
  changing: 'changed while it was read',
  overLimit: 'ignored by git, in a workspace with too many files',
};
