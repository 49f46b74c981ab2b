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

/** Sentence about what no checkpoint of a workspace can hold, whatever its limits. */
export const outsideWords =
  'Outside of the workspace nothing is taken back: other files, processes, databases, what was pushed or sent.';

/** Result of a restore. */
export function restoredWords(entries: number): string {
  if (entries === 0) return 'No file had to be restored.';
  return entries === 1 ? 'Restored 1 file or directory.' : `Restored ${entries} files and directories.`;
}

/** Effect of a restore on the repository. */
export const gitWords = ({ moved, isRestored, reason }: GitResult): string =>
  `${moved.join(', ')} ${isRestored ? 'set back' : 'left'}${reason === undefined ? '' : `, ${reason}`}`;

interface GitResult {
  readonly moved: readonly string[];
  readonly isRestored: boolean;
  readonly reason?: string | undefined;
}

/** Effect on files that a request has, or was refused. */
export type FileAct = 'restored' | 'merged';

/** Why a restore or a merge was refused; a list of the conflicts follows. */
export const conflictWords = (conflicts: number, act: FileAct = 'restored'): string =>
  `Nothing was ${act}, because ${conflicts === 1 ? '1 file was' : `${conflicts} files were`} changed since`;

/** Result of an undo for the conversation. */
export const takenBackWords = (turns: number): string =>
  turns === 1 ? 'The last turn is taken back.' : `The last ${turns} turns are taken back.`;

/** Why there is nothing to undo. */
export const noTurnWords = 'This conversation has no turn that could be taken back.';

/** Fields of a checkpoint by which the one that an undo goes back to is found. */
interface Listed {
  readonly turnId: string;
  readonly kind: string;
  readonly isUndone: boolean;
}

/** The checkpoint that an undo of these turns goes back to; a turn that could change no files has none. Undefined: none of them has. */
export const checkpointBefore = <C extends Listed>(
  checkpoints: readonly C[],
  turnIds: Iterable<string>,
): C | undefined => {
  const wanted = new Set(turnIds);
  return checkpoints.find(({ turnId, kind, isUndone }) => kind === 'turn' && !isUndone && wanted.has(turnId));
};
