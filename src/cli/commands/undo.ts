import * as v from 'valibot';
import { JsonRpcError, type RestoredAnswer, restoreCheckpoint, undoTurns } from '../../client/index.ts';
import { rpcErrors } from '../../protocol/index.ts';
import type { CommandContext } from '../command.ts';
import { CliError, usageError } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { inLine } from '../render.ts';
import { notCoveredLines, uncoveredBefore, uncoveredLines, withThread } from '../thread-files.ts';

const Conflicts = v.object({
  conflicts: v.array(v.object({ path: v.string(), change: v.string(), by: v.string() })),
});
/** A restore of a large workspace may take minutes. */
const timeoutMs = 600_000;
const maxListed = 50;

/** `oratorio undo` */
export async function run(context: CommandContext): Promise<number> {
  const { options, output, signal } = context;
  const turns = Number(options['turns'] ?? 1);
  if (!Number.isSafeInteger(turns) || turns < 1) throw usageError('--turns must be a whole number from 1.', 'undo');
  const force = options['force'] === true;
  const restore = typeof options['restore'] === 'string' ? options['restore'] : undefined;
  return withThread(context, async (server, threadId) => {
    try {
      const uncovered = await uncoveredBefore(server, threadId, { turns, restore }, { signal, timeoutMs });
      for (const line of uncoveredLines(uncovered)) output.note(line);
      const request = { force, signal, timeoutMs };
      const answer =
        restore !== undefined
          ? await restoreCheckpoint(server, threadId, restore, request)
          : await undoTurns(server, threadId, { turns, ...request });
      if (output.json) output.document({ threadId, uncovered, ...withoutThread(answer) });
      for (const line of linesOf(answer)) output.line(line);
      return exitCodes.ok.code;
    } catch (error) {
      throw refusalOf(error) ?? error;
    }
  });
}

function withoutThread({ thread: _, ...answer }: RestoredAnswer & { readonly thread?: unknown }) {
  return answer;
}

/** Files that a restore changed and those that it left, for people. */
export function linesOf(answer: RestoredAnswer): string[] {
  const { restoreId, restored, kept, changedMeanwhile, notCovered, git, runningProcesses } = answer;
  return [
    `Restored ${restored.length} ${restored.length === 1 ? 'file or directory' : 'files and directories'}.`,
    ...listed(restored, 'restored'),
    ...listed(kept, 'kept, changed by you or another conversation'),
    ...listed(changedMeanwhile, 'left, changed while it was restored'),
    ...(git ? [gitLine(git)] : []),
    ...notCoveredLines(notCovered),
    ...runningProcesses.map(({ id, command }) => `  still running: ${id} ${inLine(command)}`),
    `To take this back: oratorio undo --restore ${restoreId}`,
  ];
}

const gitLine = ({ moved, isRestored, reason }: NonNullable<RestoredAnswer['git']>): string =>
  `  git: ${inLine(moved.join(', '))} ${isRestored ? 'set back' : 'left'}${reason === undefined ? '' : `, ${inLine(reason)}`}`;

function listed(paths: readonly string[], what: string): string[] {
  const more = paths.length - maxListed;
  return [
    ...paths.slice(0, maxListed).map((path) => `  ${what}: ${inLine(path)}`),
    ...(more > 0 ? [`  ${what}: ${more} more`] : []),
  ];
}

/** A refused restore with its conflicts; undefined for another error. */
export function refusalOf(error: unknown): CliError | undefined {
  if (!(error instanceof JsonRpcError) || error.code !== rpcErrors.restoreConflict.code) return undefined;
  const parsed = v.safeParse(Conflicts, error.data);
  const conflicts = parsed.success ? parsed.output.conflicts : [];
  const lines = conflicts
    .slice(0, maxListed)
    .map(({ path, change, by }) => `\n  ${inLine(path)} (${change} by ${by === 'user' ? 'you' : inLine(by)} since)`);
  const message = `Nothing was restored, because ${conflicts.length} of the files were changed since:${lines.join('')}`;
  return new CliError('failure', message, 'To overwrite these changes: oratorio undo --force', 'restoreConflict');
}
