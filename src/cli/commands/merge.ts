import * as v from 'valibot';
import { mergeFork } from '../../client/index.ts';
import type { CommandContext } from '../command.ts';
import { CliError, usageError } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { commandIn, linesOf, refusalOf, restoreArguments } from '../restores.ts';
import { withThread } from '../thread-files.ts';

/** A merge of a large workspace may take minutes. */
const timeoutMs = 600_000;

const Fork = v.looseObject({
  thread: v.looseObject({
    forkedFromThreadId: v.optional(v.string()),
    config: v.optional(v.looseObject({ workspaceOverride: v.optional(v.string()) }), {}),
  }),
});

/** `oratorio merge` */
export async function run(context: CommandContext): Promise<number> {
  const { argument, options, output, signal } = context;
  if (argument === undefined) throw usageError('merge needs the id of a fork with a worktree.', 'merge');
  const force = options['force'] === true;
  return withThread({ ...context, options: { ...options, thread: argument } }, async (server, threadId) => {
    const { thread } = v.parse(Fork, await server.request('thread/read', { threadId }, { signal }));
    const { forkedFromThreadId: original, config } = thread;
    if (original === undefined || config.workspaceOverride === undefined) {
      const hint = `Make one: ${commandIn(context, 'fork', threadId, '--worktree')}`;
      throw new CliError('failure', `${threadId} has no files of its own that could be merged.`, hint, 'noFork');
    }
    try {
      const answer = await mergeFork(server, threadId, { force, signal, timeoutMs });
      if (output.json) output.document({ threadId, intoThreadId: original, ...answer });
      for (const line of linesOf(answer, commandIn(context, ...restoreArguments(original, answer)))) output.line(line);
      return exitCodes.ok.code;
    } catch (error) {
      throw refusalOf(error, commandIn(context, 'merge', threadId, '--force'), 'merged') ?? error;
    }
  });
}
