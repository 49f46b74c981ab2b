/** Shared by `undo`, `diff`, `fork` and `merge`: from a workspace to the conversation whose files are meant. */
import * as v from 'valibot';
import { type AppServerClient, JsonRpcError } from '../client/index.ts';
import { rpcErrors } from '../protocol/index.ts';
import { declineUnattended } from './approvals.ts';
import type { CommandContext } from './command.ts';
import { CliError } from './errors.ts';
import { reachServer } from './lasting-server.ts';
import { Patience } from './patience.ts';
import { inLine } from './render.ts';

const Threads = v.looseObject({
  data: v.array(
    v.looseObject({
      id: v.string(),
      config: v.optional(v.looseObject({ workspaceOverride: v.optional(v.string()) })),
    }),
  ),
});

/** Runs `work` with the conversation of `--thread`, else with the last conversation that worked in the files of the workspace. */
export async function withThread<T>(
  context: CommandContext,
  work: (server: AppServerClient, threadId: string) => Promise<T>,
): Promise<T> {
  const { options, signal, output } = context;
  const { record, server } = await reachServer(context, declineUnattended(output), new Patience(context));
  try {
    const { thread } = options;
    const path = record.canonicalWorkspacePath;
    const threadId = typeof thread === 'string' ? thread : await newestThread(server, path, signal);
    try {
      return await work(server, threadId);
    } catch (error) {
      throw refusal(error, threadId, path) ?? error;
    }
  } finally {
    server.close();
  }
}

async function newestThread(server: AppServerClient, path: string, signal: AbortSignal): Promise<string> {
  const { data } = v.parse(Threads, await server.request('thread/list', {}, { signal }));
  // A fork or an attempt of a race may be newer, but its files are elsewhere.
  const newest = data.find(({ config }) => config?.workspaceOverride === undefined) ?? data[0];
  if (newest) return newest.id;
  throw new CliError('failure', `There is no conversation in ${path}.`, 'Start one: oratorio chat', 'threadNotFound');
}

const Refused = v.looseObject({ threadId: v.optional(v.string()), turnId: v.optional(v.string()) });
const onPage = 'on the page: oratorio inspect --open';

/** A refusal of the server in words, with the next step; undefined for another error. */
function refusal(error: unknown, threadId: string, path: string): CliError | undefined {
  if (!(error instanceof JsonRpcError)) return undefined;
  const { code, data, message } = error;
  const names = v.safeParse(Refused, data);
  const { threadId: named = threadId, turnId = '' } = names.success ? names.output : {};
  const failure = (name: keyof typeof rpcErrors, what: string, hint: string) =>
    code === rpcErrors[name].code ? new CliError('failure', what, hint, name) : undefined;
  return (
    failure(
      'threadNotFound',
      `There is no conversation ${inLine(named)} in ${path}.`,
      'List the conversations: oratorio chat, then /resume',
    ) ??
    failure(
      'turnNotFound',
      `There is no turn or restore ${inLine(turnId)} whose files are saved.`,
      `Turns and their changes are ${onPage}`,
    ) ??
    failure(
      'turnInProgress',
      `A turn of ${inLine(named)} is running in these files, so nothing was changed.`,
      `Wait until it has ended, or stop it ${onPage}`,
    ) ??
    failure('checkpointFailed', message, checkpointHint(message))
  );
}

const checkpointHint = (message: string): string => {
  if (/ENOSPC|no space|disk is full/i.test(message)) return 'Free some space on the disk, then run the command again.';
  if (message.includes('Checkpoints.Enabled'))
    return 'Switch Checkpoints.Enabled on in config.json, then run new turns.';
  return 'See the log of the server: oratorio logs';
};
