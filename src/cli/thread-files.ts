/** Shared by `undo` and `diff`: from a workspace to the conversation whose files are meant, and what no checkpoint covers. */
import * as v from 'valibot';
import { type AppServerClient, type CheckpointAnswer, listCheckpoints, type RequestOptions } from '../client/index.ts';
import { checkpointBefore, outsideWords, uncoveredWords } from '../protocol/index.ts';
import { declineUnattended } from './approvals.ts';
import type { CommandContext } from './command.ts';
import { reachServer } from './conversation.ts';
import { CliError } from './errors.ts';
import { Patience } from './patience.ts';
import { inLine } from './render.ts';

type Server = Pick<AppServerClient, 'request'>;

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

/** Entries that people are shown of a list. */
const maxListed = 50;

/** Entries that no checkpoint covers, as lines. @param total of a list that was cut */
export function notCoveredLines(
  entries: readonly { readonly path: string; readonly reason: string }[],
  total = entries.length,
): string[] {
  const shown = entries.slice(0, maxListed);
  const lines = shown.map(
    ({ path, reason }) => `  not covered: ${inLine(path)} (${inLine(uncoveredWords[reason] ?? reason)})`,
  );
  const more = total - shown.length;
  return more > 0 ? [...lines, `  not covered: ${more} more`] : lines;
}

/** Entries that an undo will not bring back. */
export interface Uncovered {
  readonly entries: CheckpointAnswer['notCovered'];
  /** `entries` may be the first of more. */
  readonly total: number;
}

/** Reads what the undo of the last turns, or of a restore, will leave as it is. */
export async function uncoveredBefore(
  server: Server,
  threadId: string,
  { turns, restore }: { readonly turns: number; readonly restore?: string | undefined },
  options: RequestOptions = {},
): Promise<Uncovered> {
  const checkpoints = await listCheckpoints(server, threadId, options);
  const found =
    restore === undefined
      ? checkpointBefore(checkpoints, await lastTurns(server, threadId, turns, options))
      : checkpoints.find(({ turnId }) => turnId === restore);
  const entries = found?.notCovered ?? [];
  return { entries, total: Math.max(entries.length, found?.notCoveredTotal ?? 0) };
}

/** Says before an undo what it will not bring back. */
export const uncoveredLines = ({ entries, total }: Uncovered): string[] => [
  ...(total > 0 ? ['Not in the checkpoint, so left as it is:', ...notCoveredLines(entries, total)] : []),
  outsideWords,
];

const ThreadWithTurns = v.looseObject({
  thread: v.looseObject({ turns: v.optional(v.array(v.looseObject({ id: v.string() })), () => []) }),
});
/** Turns that one answer holds at most. */
const maxTurns = 1_000;

async function lastTurns(server: Server, threadId: string, count: number, options: RequestOptions): Promise<string[]> {
  const asked = { threadId, includeTurns: true, turnLimit: Math.min(count, maxTurns) };
  const { thread } = v.parse(ThreadWithTurns, await server.request('thread/read', asked, options));
  return thread.turns.map(({ id }) => id);
}
