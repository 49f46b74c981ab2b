/** Shared by `undo` and `diff`: from a workspace to the conversation whose files are meant. */
import * as v from 'valibot';
import type { AppServerClient } from '../client/index.ts';
import { declineUnattended } from './approvals.ts';
import type { CommandContext } from './command.ts';
import { reachServer } from './conversation.ts';
import { CliError } from './errors.ts';
import { Patience } from './patience.ts';

const Threads = v.looseObject({ data: v.array(v.looseObject({ id: v.string() })) });

/** Runs `work` with the conversation that `--thread` names, or the one that was active most recently. */
export async function withThread<T>(
  context: CommandContext,
  work: (server: AppServerClient, threadId: string) => Promise<T>,
): Promise<T> {
  const { options, signal, output } = context;
  const { record, server } = await reachServer(context, declineUnattended(output), new Patience(context));
  try {
    const { thread } = options;
    if (typeof thread === 'string') return await work(server, thread);
    const [newest] = v.parse(Threads, await server.request('thread/list', {}, { signal })).data;
    if (!newest) {
      const message = `There is no conversation in ${record.canonicalWorkspacePath}.`;
      throw new CliError('failure', message, 'Start one: oratorio chat', 'threadNotFound');
    }
    return await work(server, newest.id);
  } finally {
    server.close();
  }
}
