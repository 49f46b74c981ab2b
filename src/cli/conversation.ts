/** Shared by `chat` and `exec`: from a workspace to a thread on its agent server, and from a prompt to its answer. */
import { setTimeout as sleep } from 'node:timers/promises';
import * as v from 'valibot';
import {
  AppServerClient,
  AppServerConnectionError,
  AppServerSilentError,
  lastingTurn,
  type RecordAnswer,
  type RpcNotification,
  type RunningTurn,
  startThread,
  startTurn,
  type TurnEvent,
} from '../client/index.ts';
import { defaults, type TurnMode } from '../protocol/index.ts';
import { toolChainEnvironment } from '../supervise/index.ts';
import { discardedIn } from './activity.ts';
import { type Approver, askAt, declineUnattended } from './approvals.ts';
import type { CommandContext } from './command.ts';
import { CliError, usageError } from './errors.ts';
import { clientInfo, ensureWorkspace } from './hub.ts';
import { partsOf } from './mentions.ts';
import { Patience } from './patience.ts';
import { workspacePath } from './workspace.ts';

export interface Conversation {
  readonly server: Pick<AppServerClient, 'request'>;
  /** Changed by `/resume`. */
  threadId: string;
  readonly workspacePath: string;
  /** Mode of the following prompts; undefined: the thread's mode. */
  mode: TurnMode | undefined;
  /** @param isTyped see `partsOf` */
  ask(prompt: string, isTyped?: boolean): Promise<RunningTurn>;
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
  const reached = await reachServer(context, onRequest, patience);
  let { server } = reached;
  /** Another connection after the agent server has ended; its next start resumes the turn. */
  const reconnect = async (reason: AppServerConnectionError): Promise<AppServerClient> => {
    // The user asked for this end, or does not wait any longer.
    if (reason instanceof AppServerSilentError || context.signal.aborted || patience.hasLeft || stopped) throw reason;
    ({ server } = await reachServer(context, onRequest, patience));
    watchSuspension();
    return server;
  };
  let stopped = false;
  const watchSuspension = () =>
    server.onNotification((notification) => {
      stopped ||= isStop(notification);
    });
  watchSuspension();
  try {
    const { canonicalWorkspacePath: path } = reached.record;
    const threadId = await threadOf(server, path, context);
    const asked = options['yes'] === true ? ({ approvalPolicy: 'autoApprove' } as const) : {};
    const conversation: Conversation = {
      server: { request: (...request) => server.request(...request) },
      threadId,
      workspacePath: path,
      mode: options['plan'] === true ? 'plan' : undefined,
      // For each turn, never in the thread: a later command without --yes asks again.
      async ask(prompt, isTyped) {
        const mode = conversation.mode && { mode: conversation.mode };
        const turn = await startTurn(server, conversation.threadId, partsOf(prompt, path, isTyped), {
          ...asked,
          ...mode,
        });
        return patience.watch(() => server, lastingTurn(turn, reconnect));
      },
      close: () => server.close(),
    };
    return conversation;
  } catch (error) {
    server.close();
    throw error;
  }
}

/**
 * Ensures the agent server and connects to it. A server that has just ended may still be offered by its Hub: one that cannot
 * be reached is ensured again. Nothing was sent to it, so nothing happens twice.
 */
export async function reachServer(
  context: CommandContext,
  onRequest: Approver,
  { options: silence }: Patience,
): Promise<{ readonly record: RecordAnswer; readonly server: AppServerClient }> {
  const { options, signal } = context;
  const path = workspacePath(context, options['workspace']);
  const info = { ...clientInfo, title: 'Oratorio command line' };
  const deadline = performance.now() + defaults.client.reviveMs;
  for (;;) {
    const record = await ensureWorkspace(context, path);
    try {
      const url = addressOf(record);
      const server = await AppServerClient.connect(url, { clientInfo: info, onRequest, signal, silence });
      server.onNotification((notification) => passOnResolved(notification, onRequest));
      return { record, server };
    } catch (error) {
      if (!(error instanceof AppServerConnectionError) || performance.now() > deadline) throw error;
      await sleep(defaults.client.revivePollMs, undefined, { signal });
    }
  }
}

const Suspended = v.looseObject({ kind: v.literal('turnSuspended'), reason: v.literal('stop') });

/** Whether a user has stopped the agent server: its turns wait for the next start. */
const isStop = ({ method, params }: RpcNotification): boolean => method === 'system/event' && v.is(Suspended, params);

const Resolved = v.looseObject({ requestId: v.string(), decision: v.string(), client: v.optional(v.string()) });

/** Withdraws a question that is decided. */
function passOnResolved({ method, params }: RpcNotification, { resolved }: Approver): void {
  if (method !== 'item/approval/resolved' || !resolved) return;
  const { requestId, decision, client } = v.parse(Resolved, params);
  resolved(requestId, decision, client);
}

/** @throws CliError `startFailed` when the server has no WebSocket */
function addressOf({ endpoints, canonicalWorkspacePath }: RecordAnswer): string {
  const url = endpoints['appServerWebSocket'];
  if (url !== undefined) return url;
  const message = `The agent server of ${canonicalWorkspacePath} offers no WebSocket.`;
  throw new CliError('startFailed', message, 'See: oratorio inspect .');
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
  const interrupt = () => void turn.interrupt().catch(() => undefined);
  signal.addEventListener('abort', interrupt, { once: true });
  if (signal.aborted) interrupt();
  try {
    for await (const event of turn) {
      onEvent(event);
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
    throw error instanceof AppServerConnectionError && !signal.aborted ? turnCut(turn, error) : error;
  } finally {
    signal.removeEventListener('abort', interrupt);
  }
}
