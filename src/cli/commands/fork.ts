import * as v from 'valibot';
import type { CommandContext } from '../command.ts';
import { usageError } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { inLine } from '../render.ts';
import { withThread } from '../thread-files.ts';

const Forked = v.looseObject({
  thread: v.looseObject({
    id: v.string(),
    config: v.optional(v.looseObject({ workspaceOverride: v.optional(v.string()) }), {}),
  }),
});
/** A worktree gets all files of the workspace. */
const timeoutMs = 600_000;

/** `oratorio fork` */
export async function run(context: CommandContext): Promise<number> {
  const { argument, options, output, signal } = context;
  if (argument === undefined) throw usageError('fork needs the id of a conversation.', 'fork');
  const { at, name } = options;
  const worktree = options['worktree'] === true;
  return withThread({ ...context, options: { ...options, thread: argument } }, async (server, threadId) => {
    const params = {
      ...{ threadId, worktree },
      ...(typeof at === 'string' && { atTurnId: at }),
      ...(typeof name === 'string' && { displayName: name }),
    };
    const { thread } = v.parse(Forked, await server.request('thread/fork', params, { signal, timeoutMs }));
    const directory = thread.config.workspaceOverride;
    if (output.json) output.document({ threadId: thread.id, directory: directory ?? null });
    output.line(`Forked to ${thread.id}.`);
    if (worktree && directory !== undefined) output.line(`It works in ${inLine(directory)}.`);
    output.line(`To continue there: oratorio chat --thread ${thread.id}`);
    return exitCodes.ok.code;
  });
}
