/** Reasons why an entry is in no checkpoint, in words that complete "it is …". No schema: the page has them, too. */
export const uncoveredWords: Readonly<Record<string, string>> = {
  tooLarge: 'too large',
  ignoredTooLarge: 'ignored by git, and too large',
  unreadable: 'not readable',
  special: 'not a file, directory or link',
  otherFileSystem: 'on another file system',
  changing: 'changed while it was read',
  overLimit: 'ignored by git, in a workspace with too many files',
  repository: 'a repository of git that changed; the result of the undo says how far it is set back',
};

/** Sentence about the files that no checkpoint of a workspace can hold, under any limits. */
export const outsideWords =
  'Outside of the workspace nothing is taken back: other files, processes, databases, pushes and sent data.';

/** Result of a restore. */
export function restoredWords(entries: number): string {
  if (entries === 0) return 'No file had to be restored.';
  return entries === 1 ? 'Restored 1 file or directory.' : `Restored ${entries} files and directories.`;
}

/** Effect of a restore on the repository. */
export function gitWords({ moved, isRestored, reason, left = [] }: GitResult): string {
  const stays = new Set(left.map(({ name }) => name));
  const back = isRestored ? moved : left.length > 0 ? moved.filter((name) => !stays.has(name)) : [];
  const rest = isRestored ? [] : moved.filter((name) => !back.includes(name));
  const commands = left.flatMap(({ command }) => command ?? []).slice(0, maxCommands);
  return [
    ...(back.length > 0 ? [`${back.join(', ')} set back`] : []),
    ...(rest.length > 0 ? [`${rest.join(', ')} left`] : []),
    ...(reason === undefined ? [] : [reason]),
    ...(commands.length > 0 ? [`to set it back by hand: ${commands.join('; ')}`] : []),
  ].join(', ');
}

/** Commands that one line names. */
const maxCommands = 5;

interface GitResult {
  readonly moved: readonly string[];
  readonly isRestored: boolean;
  readonly reason?: string | undefined;
  readonly left?: readonly { readonly name: string; readonly command?: string | undefined }[] | undefined;
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
  readonly notCovered: readonly { readonly path: string }[];
  readonly notCoveredTotal: number;
}

/**
 * The checkpoint that an undo of these turns restores, with the entries that any of their checkpoints does not cover. Undefined: no turn of
 * them has a checkpoint, because none could change files.
 */
export const checkpointBefore = <C extends Listed>(
  checkpoints: readonly C[],
  turnIds: Iterable<string>,
): C | undefined => {
  const wanted = new Set(turnIds);
  const all = checkpoints.filter(({ turnId, kind, isUndone }) => kind === 'turn' && !isUndone && wanted.has(turnId));
  const [first] = all;
  if (!first) return undefined;
  const named = new Map(all.flatMap(({ notCovered }) => notCovered).map((entry) => [entry.path, entry]));
  const further = Math.max(0, first.notCoveredTotal - first.notCovered.length);
  return { ...first, notCovered: [...named.values()], notCoveredTotal: named.size + further };
};
