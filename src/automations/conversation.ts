import { setImmediate } from 'node:timers/promises';
import type { Failure } from '../../machines/index.ts';
import { AgentError, type Runtime, StorageError, type StoredAutomation, type StoredRun } from '../agent/index.ts';
import { defaults, type Turn } from '../protocol/index.ts';

/** Outcome of a turn. */
export type TurnEnd =
  | { readonly status: 'completed'; readonly result: string | undefined }
  | { readonly status: 'failed'; readonly failure: Failure; readonly result: string | undefined }
  | { readonly status: 'cancelled'; readonly result: string | undefined }
  /** The next process continues with the turn. */
  | { readonly status: 'suspended' };

/** Default policy: no user is present, so that calls that need approval are declined. */
const unattended = 'interrupt';
export const channelName = 'automation';

/** Codes of failures that a retry would repeat. */
const permanentErrors: readonly string[] = [
  'threadNotFound',
  'threadNotActive',
  'upstreamUnauthorized',
  'upstreamRejected',
  'contextTooLong',
];

const failureWith = (code: string, message: string, retryAfterMs?: number): Failure => ({
  code,
  message,
  isRetryable: !permanentErrors.includes(code),
  ...(retryAfterMs !== undefined && { retryAfterMs }),
});

/** Failure for the history. Undefined for a bug, which belongs into the log. */
export function failureOf(error: unknown): Failure | undefined {
  if (error instanceof AgentError) return failureWith(error.reason, error.detail ?? error.message);
  if (error instanceof StorageError) return failureWith('storageFailed', error.message);
  return undefined;
}

/** Thread of a binding; creates it if the binding asks for a new one. */
export function threadFor(runtime: Runtime, row: StoredAutomation, workspacePath: string): string {
  const { binding, progress, model, name } = row;
  if (binding.mode === 'thread') return binding.threadId;
  if (binding.mode === 'own' && progress.threadId !== null && isKnown(runtime, progress.threadId)) {
    return progress.threadId;
  }
  const { thread, announce } = runtime.threads.start({
    displayName: name,
    identity: { channelName, channelContext: `${channelName}:${row.id}`, workspacePath },
    config: model === undefined ? undefined : { model },
  });
  announce();
  return thread.id;
}

export function isKnown(runtime: Runtime, threadId: string): boolean {
  try {
    runtime.threads.read(threadId, { includeTurns: false });
    return true;
  } catch (error) {
    if (error instanceof AgentError && error.reason === 'threadNotFound') return false;
    throw error;
  }
}

interface RunPrompt {
  /** Stores the id of the turn, in one commit with its row. */
  readonly saveStart: (turnId: string) => void;
  /** Called before the turn begins. */
  readonly onStarted: () => void;
  /** Called before calls with effects begin. When it throws, they do not begin. */
  readonly beforeEffects: (tool: string) => void;
  readonly signal: AbortSignal;
}

/**
 * Runs the prompt of an automation as a turn of the thread, as soon as no other turn runs there. Returns the end of the turn.
 *
 * @throws AgentError, StorageError when it cannot start; the reason of `signal` when it aborts before
 */
export async function runPrompt(
  runtime: Runtime,
  threadId: string,
  row: StoredAutomation,
  { saveStart, onStarted, beforeEffects, signal }: RunPrompt,
): Promise<TurnEnd> {
  const { begin, ended } = await whenFree(runtime, threadId, signal, () =>
    runtime.turns.start(threadId, [{ type: 'text', text: row.prompt }], undefined, {
      model: row.model,
      approvalPolicy: row.approvalPolicy ?? unattended,
      isUnattended: true,
      sender: channelName,
      alsoStore: saveStart,
      beforeEffects,
    }),
  );
  onStarted();
  begin();
  return endOfTurn(runtime, ended);
}

async function endOfTurn(runtime: Runtime, ended: Promise<Turn>): Promise<TurnEnd> {
  const turn = await Promise.race([ended, runtime.suspended]);
  return turn ? endOf(turn) : { status: 'suspended' };
}

/** A turn that an earlier process began. */
export interface LeftTurn {
  readonly startedAt: number;
  readonly ended: Promise<TurnEnd>;
}

/** Turn of a run that an earlier process left: it continues, or has completed. Undefined: it ended with that process, or never began. */
export function leftTurnOf(runtime: Runtime, { threadId, turnId }: StoredRun): LeftTurn | undefined {
  if (threadId === undefined || turnId === undefined || !isKnown(runtime, threadId)) return undefined;
  const running = runtime.turns.running(threadId);
  if (running?.turnId === turnId) {
    return { startedAt: Date.parse(running.snapshot().startedAt), ended: endOfTurn(runtime, running.ended) };
  }
  const { turns = [] } = runtime.threads.read(threadId, { includeTurns: true });
  const completed = turns.find(({ id, status }) => id === turnId && status === 'completed');
  return completed && { startedAt: Date.parse(completed.startedAt), ended: Promise.resolve(endOf(completed)) };
}

/** Calls `start` until no turn of the thread refuses it. @throws any other error of `start`; the reason of `signal` */
async function whenFree<T>(runtime: Runtime, threadId: string, signal: AbortSignal, start: () => T): Promise<T> {
  for (;;) {
    signal.throwIfAborted();
    try {
      return start();
    } catch (error) {
      if (!(error instanceof AgentError && error.reason === 'turnInProgress')) throw error;
    }
    await unlessAborted(Promise.race([runtime.turns.running(threadId)?.ended, runtime.suspended]), signal);
    // The thread's queue, and a deletion of the thread, come before the automation.
    await setImmediate();
  }
}

/** Waits for `promise`. @throws the reason of `signal` when it aborts before */
async function unlessAborted(promise: Promise<unknown> | undefined, signal: AbortSignal): Promise<void> {
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  try {
    await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

function endOf(turn: Turn): TurnEnd {
  const result = resultOf(turn);
  switch (turn.status) {
    case 'completed':
      return { status: 'completed', result };
    case 'cancelled':
      // A shutdown of the server, not a user, interrupted the turn.
      if (turn.interruptedBy !== 'shutdown') return { status: 'cancelled', result };
      return { status: 'failed', failure: failureWith('shutdown', 'The agent server was stopped.'), result };
    default: {
      const { code, message, retryAfterMs } = turn.error ?? { code: 'internalError', message: 'The turn failed.' };
      return { status: 'failed', failure: failureWith(code, message, retryAfterMs), result };
    }
  }
}

/** Last message of the agent, shortened. */
function resultOf(turn: Turn): string | undefined {
  const said = turn.items.findLast((item) => item.type === 'agentMessage' && !item.discarded);
  const text = said?.type === 'agentMessage' ? said.text.trim() : '';
  if (text === '') return undefined;
  const most = defaults.automations.resultChars;
  // Splits by code points: half a surrogate pair would be invalid.
  return text.length > most ? `${[...text.slice(0, most - 1)].join('').trimEnd()}…` : text;
}
