import { forkThread } from '../../client/index.ts';
import type { CommandContext } from '../command.ts';
import { usageError } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { inLine } from '../render.ts';
import { withThread } from '../thread-files.ts';

/** Time-out: a worktree copies all files of the workspace. */
const timeoutMs = 600_000;

/** `oratorio fork` */
export async function run(context: CommandContext): Promise<number> {
  const { argument, options, output, signal } = context;
  if (argument === undefined) throw usageError('fork needs the id of a conversation.', 'fork');
  const atTurnId = typeof options['at'] === 'string' ? options['at'] : undefined;
  const displayName = typeof options['name'] === 'string' ? options['name'] : undefined;
  const worktree = options['worktree'] === true;
  return withThread({ ...context, options: { ...options, thread: argument } }, async (server, original) => {
    const request = { atTurnId, worktree, displayName, signal, timeoutMs };
    const { threadId, directory } = await forkThread(server, original, request);
    if (output.json) output.document({ threadId, directory: directory === '' ? null : directory });
    output.line(`Forked to ${threadId}.`);
    if (worktree) output.line(`It works in ${inLine(directory)}.`);
    output.line(`To continue there: oratorio chat --thread ${threadId}`);
    return exitCodes.ok.code;
  });
}
