import * as v from 'valibot';
import { rpcMethods, threadMarkdown, wholeThread } from '../../protocol/index.ts';
import type { CommandContext } from '../command.ts';
import { exitCodes } from '../exit-codes.ts';
import { withThread } from '../thread-files.ts';

/** `oratorio threads export` */
export async function run(context: CommandContext): Promise<number> {
  const { output, signal } = context;
  return withThread(context, async (server, threadId) => {
    const thread = await wholeThread(threadId, async (range) =>
      v.parse(rpcMethods['thread/read'].result, await server.request('thread/read', range, { signal })),
    );
    if (output.json) output.document(thread);
    else output.raw(threadMarkdown(thread));
    return exitCodes.ok.code;
  });
}
