/** Shared by the commands that need a Hub. */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Connection,
  connectHub,
  discoverHub,
  HubRequestError,
  HubUnavailableError,
  type RecordAnswer,
} from '../client/index.ts';
import { version } from '../protocol/index.ts';
import type { CommandContext } from './command.ts';
import { CliError, quoted } from './errors.ts';
import { warnRestricted } from './restricted.ts';
import { isWorkspace } from './workspace.ts';

export const clientInfo = { name: 'oratorio-cli', version };

/** Longest wait for a Hub that is shutting down, so that a new one can replace it. */
const stoppingHubMs = 15_000;
/** Most Hubs that may die during one operation. */
const maxHubDeaths = 3;

/** Finds the Hub, or starts one unless `--no-start` is given. Shows a spinner until then. */
export async function connect(context: CommandContext): Promise<Connection> {
  const { home, options, output, signal } = context;
  const progress = output.progress('Looking for the Hub');
  try {
    return await connectHub({
      home,
      signal,
      autoStart: options['start'] !== false,
      onProgress: (event) => {
        if (event.kind === 'starting') progress.text('Starting the Hub');
      },
    });
  } finally {
    progress.stop();
  }
}

/** Runs `work` under a spinner. */
export async function during<T>({ output }: CommandContext, text: string, work: () => Promise<T>): Promise<T> {
  const progress = output.progress(text);
  try {
    return await work();
  } finally {
    progress.stop();
  }
}

/**
 * Runs `work` against a Hub. If the Hub is shutting down, waits for its end and uses the next one.
 *
 * @param isIdempotent the next Hub may repeat an operation during which a Hub died
 */
export async function withHub<T>(
  context: CommandContext,
  work: (connection: Connection) => Promise<T>,
  isIdempotent = false,
): Promise<T> {
  const deadline = performance.now() + stoppingHubMs;
  for (let deaths = 0; ; ) {
    const connection = await connect(context);
    try {
      return await work(connection);
    } catch (error) {
      const isStopping = error instanceof HubRequestError && error.code === 'hubStopping';
      const isDead = isIdempotent && error instanceof HubUnavailableError;
      deaths += isDead ? 1 : 0;
      const isRepeated = isDead ? deaths <= maxHubDeaths : isStopping && performance.now() <= deadline;
      if (!isRepeated || context.options['start'] === false) throw error;
      await sleep(200, undefined, { signal: context.signal });
    }
  }
}

/**
 * Runs `withHub` for one workspace. Starts no Hub for another directory: only a running Hub may know it.
 *
 * @throws CliError workspaceNotFound
 */
export async function withHubOf<T>(
  context: CommandContext,
  path: string,
  work: (connection: Connection) => Promise<T>,
  isIdempotent = false,
): Promise<T> {
  const { home, signal } = context;
  if (!isWorkspace(path, home) && (await discoverHub({ home, signal })).kind === 'none') {
    const hint = `To make it one: oratorio init ${quoted(path)}`;
    throw new CliError('workspaceNotFound', `${path} is not a workspace.`, hint, 'workspaceNotFound');
  }
  return withHub(context, work, isIdempotent);
}

/** Ensures the agent server of a workspace: the first step of `ensure`, `chat` and `exec`. */
export async function ensureWorkspace(context: CommandContext, workspacePath: string): Promise<RecordAnswer> {
  const record = await withHubOf(
    context,
    workspacePath,
    ({ hub }) =>
      during(context, `Starting the agent server of ${workspacePath}`, () =>
        hub.ensure({ workspacePath, client: clientInfo }, { signal: context.signal }),
      ),
    true,
  );
  warnRestricted(context.output, record);
  return record;
}
