/** Shared by `chat` and `exec`: from a workspace to a thread on its agent server, and from a prompt to its answer. */
import {
  type AppServerClient,
  AppServerConnectionError,
  type RunningTurn,
  startThread,
  startTurn,
  type TurnEvent,
} from '../client/index.ts';
import type { TurnMode } from '../protocol/index.ts';
import { toolChainEnvironment } from '../supervise/index.ts';
import { discardedIn } from './activity.ts';
import { type Approver, askAt, declineUnattended } from './approvals.ts';
import type { CommandContext } from './command.ts';
import { CliError, usageError } from './errors.ts';
import { isStop, LastingServer } from './lasting-server.ts';
import { partsOf } from './mentions.ts';
import { Patience } from './patience.ts';

export interface Conversation {
  readonly server: Pick<AppServerClient, 'request'>;
  /** Changed by `/resume` and `/new`. */
  threadId: string;
  readonly workspacePath: string;
  /** Mode of the following prompts; undefined: the thread's mode. */
  mode: TurnMode | undefined;
  /** @param isTyped see `partsOf` */
  ask(prompt: string, isTyped?: boolean): Promise<RunningTurn>;
  /** Begins another thread and continues there. */
  begin(): Promise<void>;
  close(): void;
}

/** Approver for a single prompt: a person at the terminal, else every request is declined (`--yes` raises none). */
export function approverOf({ options, output }: CommandContext): Approver {
  const isAttended = process.stdin.isTTY === true && process.stderr.isTTY === true;
  return isAttended && options['yes'] !== true
    ? askAt(process.stdin, process.stderr, output)
    : declineUnattended(output);
}

/** Connects to the thread: starts Hub, agent server, connection and thread as needed. @throws the first failure */
export async function converse(context: CommandContext, onRequest: Approver): Promise<Conversation> {
  const { options } = context;
  const patience = new Patience(context);
  const server = await LastingServer.reach(context, onRequest, patience);
  try {
    const { workspacePath: path } = server;
    const threadId = await threadOf(server.present, path, context);
    const asked = options['yes'] === true ? ({ approvalPolicy: 'autoApprove' } as const) : {};
    const unattended = onRequest.isUnattended === true ? { unattended: true } : {};
    const conversation: Conversation = {
      server: { request: (...request) => server.present.request(...request) },
      threadId,
      workspacePath: path,
      mode: options['plan'] === true ? 'plan' : undefined,
      // For each turn, never in the thread: a later command without --yes asks again.
      async ask(prompt, isTyped) {
        const mode = conversation.mode && { mode: conversation.mode };
        const turn = await startTurn(server.present, conversation.threadId, partsOf(prompt, path, isTyped), {
          ...{ ...asked, ...unattended },
          ...mode,
        });
        return patience.watch(() => server.present, server.lasting(turn));
      },
      async begin() {
        const { thread: _, ...others } = options;
        conversation.threadId = await threadOf(server.present, path, { ...context, options: others });
      },
      close: () => server.close(),
    };
    return conversation;
  } catch (error) {
    server.close();
    throw error;
  }
}

/** The conversation that `--thread` names, or a new one. */
async function threadOf(server: AppServerClient, workspacePath: string, context: CommandContext): Promise<string> {
  const { options, signal, env } = context;
  const { thread: threadId, model, effort } = options;
  // The Hub may have been started in another shell.
  const config = {
    environment: toolChainEnvironment(env),
    ...(typeof model === 'string' && { model }),
    ...(typeof effort === 'string' && { effort }),
  };
  if (typeof threadId !== 'string') return startThread(server, { workspacePath, config, signal });
  await server.request('thread/resume', { threadId }, { signal });
  await server.request('thread/config/update', { threadId, config }, { signal });
  return threadId;
}

/** The prompt of a command line, or piped input; undefined at a terminal without a prompt. */
export async function promptOf({ argument }: CommandContext): Promise<string | undefined> {
  if (argument !== undefined) return argument;
  if (process.stdin.isTTY === true) return undefined;
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
  const piped = Buffer.concat(chunks).toString('utf8').trim();
  if (piped === '') throw usageError('There is no prompt: give one, or pipe one in.');
  return piped;
}

export interface Answer {
  /** All the agent has said. */
  readonly text: string;
  /** The last thing it has said: the answer proper. */
  readonly final: string;
  readonly cancelled: boolean;
  readonly turn: Readonly<Record<string, unknown>>;
}

/** A user has stopped the agent server: its next start resumes the turn. */
function turnSuspended({ threadId, turnId }: RunningTurn, { code }: AppServerConnectionError): CliError {
  const what = 'The agent server was stopped. The turn is suspended, and resumes when the agent server starts again.';
  const hint = `Resume it: oratorio ensure; then read the answer: oratorio threads export --thread ${threadId}`;
  return new CliError('failure', what, hint, code, { threadId, turnId, state: 'suspended' });
}

/** The agent server ended, or cut the connection, while the turn ran. */
function turnCut({ threadId, turnId }: RunningTurn, { message, code }: AppServerConnectionError): CliError {
  const what = `${message} The turn was cut off; the files that it changed stay changed.`;
  const hint = `Continue: oratorio chat --thread ${threadId}; take the changes back: oratorio undo --thread ${threadId}`;
  return new CliError('failure', what, hint, code, { threadId, turnId, state: 'cut' });
}

/**
 * Follows a turn to its end. The first abort of `signal` interrupts it in the server; it then ends as cancelled.
 *
 * @param onText receives each piece of the agent's text when it arrives
 * @param onEvent receives every event
 */
export async function answerOf(
  turn: RunningTurn,
  signal: AbortSignal,
  onText: (text: string) => void,
  onEvent: (event: TurnEvent) => void = () => undefined,
): Promise<Answer> {
  const said = new Map<string, string>();
  let hasSaid = false;
  let isSuspended = false;
  const interrupt = () => void turn.interrupt().catch(() => undefined);
  signal.addEventListener('abort', interrupt, { once: true });
  if (signal.aborted) interrupt();
  try {
    for await (const event of turn) {
      onEvent(event);
      isSuspended ||= event.type === 'other' && isStop(event);
      if (event.type === 'message') {
        if (!said.has(event.itemId) && hasSaid) onText('\n\n');
        hasSaid = true;
        said.set(event.itemId, `${said.get(event.itemId) ?? ''}${event.text}`);
        onText(event.text);
      }
      for (const itemId of discardedIn(event)) said.delete(itemId);
      if (event.type === 'completed' || event.type === 'cancelled') {
        const texts = [...said.values()];
        return {
          text: texts.join('\n\n'),
          final: texts.at(-1) ?? '',
          cancelled: event.type === 'cancelled',
          turn: event.turn,
        };
      }
    }
    throw new CliError('failure', 'The turn ended without saying how.');
  } catch (error) {
    if (!(error instanceof AppServerConnectionError) || signal.aborted) throw error;
    throw isSuspended ? turnSuspended(turn, error) : turnCut(turn, error);
  } finally {
    signal.removeEventListener('abort', interrupt);
  }
}
