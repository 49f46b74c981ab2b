import { posix } from 'node:path';
import {
  type CheckpointAnswer,
  listCheckpoints,
  type RestoredAnswer,
  restoreCheckpoint,
  uncoveredBefore,
  uncoveredLines,
  undoTurns,
} from '../../client/index.ts';
import { count } from '../../lib/index.ts';
import { noTurnWords, takenBackWords } from '../../protocol/index.ts';
import type { CommandContext } from '../command.ts';
import { CliError, usageError } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { commandIn, linesOf, refusalOf, restoreArguments } from '../restores.ts';
import { withThread } from '../thread-files.ts';

/** A restore of a large workspace may take minutes. */
const timeoutMs = 600_000;

/** `oratorio undo` */
export async function run(context: CommandContext): Promise<number> {
  const { options, output, signal } = context;
  const turns = Number(options['turns'] ?? 1);
  if (!Number.isSafeInteger(turns) || turns < 1) throw usageError('--turns must be a whole number from 1.', 'undo');
  const force = options['force'] === true;
  const named = typeof options['restore'] === 'string' ? options['restore'] : undefined;
  const paths = typeof options['path'] === 'string' ? [pathInWorkspace(options['path'])] : undefined;
  return withThread(context, async (server, threadId) => {
    try {
      const patience = { signal, timeoutMs };
      let restore = named;
      let before = await uncoveredBefore(server, threadId, { turns, restore }, patience);
      if (named === undefined && before.turns === 0 && !paths) {
        restore = lastMerge(await listCheckpoints(server, threadId, patience));
        if (restore !== undefined) before = await uncoveredBefore(server, threadId, { turns, restore }, patience);
      }
      const { turnId, turns: found, ...uncovered } = before;
      const from = restore ?? (paths && turnId);
      if (restore === undefined && found === 0) throw new CliError('failure', noTurnWords, null, 'noTurn');
      if (paths && from === undefined) {
        const hint = `See the changes: ${commandIn(context, 'diff', '--thread', threadId, '--summary')}`;
        throw new CliError('failure', `${count(found, 'turn')} changed no files.`, hint, 'nothingChanged');
      }
      for (const line of uncoveredLines(uncovered)) output.note(line);
      const request = { force, ...patience };
      const answer =
        from !== undefined
          ? await restoreCheckpoint(server, threadId, from, { ...request, ...(paths && { paths }) })
          : await undoTurns(server, threadId, { turns, ...request });
      if (output.json) output.document({ threadId, uncovered, ...withoutThread(answer) });
      if (from === undefined) output.line(takenBackWords(found));
      for (const line of linesOf(answer, commandIn(context, ...restoreArguments(threadId, answer)))) output.line(line);
      return exitCodes.ok.code;
    } catch (error) {
      throw refusalOf(error, overwriting(context, threadId)) ?? error;
    }
  });
}

/**
 * The last merge that is still in the files of a conversation without turns, as in a race. A restore that undoes another one is not
 * a merge.
 */
function lastMerge(checkpoints: readonly CheckpointAnswer[]): string | undefined {
  if (checkpoints.some(({ kind }) => kind === 'turn')) return undefined;
  const left = checkpoints.filter(({ isUndone }) => !isUndone);
  const takenBack = checkpoints.length - left.length;
  return left[left.length - takenBack - 1]?.turnId;
}

function withoutThread({ thread: _, ...answer }: RestoredAnswer & { readonly thread?: unknown }) {
  return answer;
}

/** A path as the server knows it. @throws CliError for one outside of the workspace */
function pathInWorkspace(path: string): string {
  const normal = posix.normalize(path).replace(/\/$/, '');
  if (normal !== '' && normal !== '.' && normal !== '..' && !normal.startsWith('../') && !posix.isAbsolute(normal)) {
    return normal;
  }
  throw usageError('--path must be a file or directory in the workspace, relative to it.', 'undo');
}

/** Command line of this undo with `--force`. */
function overwriting(context: CommandContext, threadId: string): string {
  const given = ['turns', 'restore', 'path'].flatMap((name) => {
    const value = context.options[name];
    return typeof value === 'string' ? [`--${name}`, value] : [];
  });
  return commandIn(context, 'undo', '--thread', threadId, ...given, '--force');
}
