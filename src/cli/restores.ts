/** Shared by `undo`, `merge`, `race` and `chat`: results and refusals of restores, with the next command. */
import { conflictLines, JsonRpcError, type RestoredAnswer, restoredLines } from '../client/index.ts';
import type { FileAct } from '../protocol/index.ts';
import type { CommandContext } from './command.ts';
import { CliError, quoted } from './errors.ts';

/** Command line of a command in the same workspace. */
export function commandIn({ options }: Pick<CommandContext, 'options'>, ...words: readonly string[]): string {
  const { workspace } = options;
  const place = typeof workspace === 'string' ? ['--workspace', workspace] : [];
  return ['oratorio', ...words, ...place].map(quoted).join(' ');
}

/** Files that a restore changed, files that it left, and the command that takes it back. */
export const linesOf = (answer: RestoredAnswer, undoCommand: string): string[] => [
  ...restoredLines(answer),
  `To take this back: ${undoCommand}`,
];

/** Options of `undo` that take a restore of a conversation back. */
export const restoreArguments = (
  threadId: string,
  { restoreId }: Pick<RestoredAnswer, 'restoreId'>,
): readonly string[] => [...['undo', '--thread', threadId, '--restore', restoreId]];

/**
 * A refused restore with its conflicts; undefined for another error.
 *
 * @param overwrite command that overwrites them
 */
export function refusalOf(error: unknown, overwrite: string, act: FileAct = 'restored'): CliError | undefined {
  const lines = conflictLines(error, act);
  if (!lines || !(error instanceof JsonRpcError)) return undefined;
  const hint = `To overwrite these changes: ${overwrite}`;
  return new CliError('failure', lines.join('\n'), hint, 'restoreConflict', detailsOf(error));
}

const detailsOf = ({ data }: JsonRpcError): Readonly<Record<string, unknown>> | null =>
  typeof data === 'object' && data !== null ? { ...data } : null;
