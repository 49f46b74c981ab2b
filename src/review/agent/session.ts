import * as v from 'valibot';
import { AppServerConnectionError, JsonRpcError, type RpcNotification } from '../../client/index.ts';
import { messageOf } from '../../lib/index.ts';
import type { Logger } from '../../log/index.ts';
import { type DynamicToolResult, ownAgent, rpcErrors, ThreadConfig, TokenUsage, Turn } from '../../protocol/index.ts';
import { type AgentConnection, untilReached } from './connection.ts';
import type { DraftSubmissions } from './draft-submissions.ts';
import { endThread, runningStates } from './end-thread.ts';
import { asFailure, ReviewAgentError } from './errors.ts';
import type { AgentLimits } from './limits.ts';
import { type ReviewPrompt, reminder } from './prompt.ts';
import { readingTools, reviewTools } from './tools.ts';
import type { ReviewHooks, ReviewSubmission } from './types.ts';

export interface SessionOptions {
  readonly server: AgentConnection;
  /** Connects to the agent server of the workspace again. */
  readonly connect: (signal: AbortSignal) => Promise<AgentConnection>;
  readonly submissions: DraftSubmissions;
  readonly prompt: ReviewPrompt;
  readonly hooks: ReviewHooks;
  readonly limits: AgentLimits;
  readonly workspacePath: string;
  readonly worktreePath: string;
  /** Title in the list of threads. */
  readonly displayName: string;
  readonly logger: Logger;
}

const Started = v.looseObject({ thread: v.looseObject({ id: v.string(), config: v.optional(ThreadConfig) }) });
const Begun = v.looseObject({ turn: v.looseObject({ id: v.string() }) });
const Ended = v.looseObject({ turn: Turn, tokenUsage: v.optional(TokenUsage) });

type TurnEnd = v.InferOutput<typeof Ended>;
const Resumed = v.looseObject({ thread: v.looseObject({ turns: v.optional(v.array(Turn), []) }) });

const endings = new Set(['turn/completed', 'turn/failed', 'turn/cancelled']);

/**
 * One review in a thread of its own: prompts the model, answers its tools, and reminds it once when it ended without
 * handing in. The thread is archived in every case.
 *
 * @throws ReviewAgentError; the reason of an aborted signal; any error of a hook
 */
export async function runSession(options: SessionOptions): Promise<ReviewSubmission> {
  const threadId = await startThread(options);
  const session = new Session(options, threadId);
  try {
    return await session.run();
  } finally {
    await session.close();
  }
}

async function startThread({
  server,
  prompt,
  workspacePath,
  worktreePath,
  displayName,
}: SessionOptions): Promise<string> {
  const config: ThreadConfig = {
    approvalPolicy: 'interrupt',
    workspaceOverride: worktreePath,
    readOnly: true,
    // Only our own agent is bound to read, whichever agent does the turns of the workspace.
    agent: ownAgent,
    enabledTools: [...readingTools],
    agentInstructions: prompt.instructions,
  };
  const channelName = 'oratorio-review';
  const identity = { channelName, userId: 'backend', channelContext: `${channelName}:${displayName}`, workspacePath };
  const answer = await server
    .request('thread/start', { identity, displayName, config, dynamicTools: reviewTools() })
    .catch((error: unknown) => {
      throw cannotStart(error, worktreePath);
    });
  const { thread } = v.parse(Started, answer);
  // A server that does not know these settings would work in the workspace itself.
  const { config: taken } = thread;
  const isConfined = taken?.readOnly === true && taken.agent === ownAgent;
  if (isConfined && taken.workspaceOverride === worktreePath) return thread.id;
  await server.request('thread/archive', { threadId: thread.id }).catch(() => undefined);
  throw new ReviewAgentError('agentUnavailable', 'The agent server is too old to work in a worktree, read-only.', {
    isRetryable: false,
  });
}

function cannotStart(error: unknown, worktreePath: string): unknown {
  if (!(error instanceof JsonRpcError)) return asFailure(error);
  if (error.code !== rpcErrors.workspaceOverrideRefused.code) return asFailure(error);
  const message = `The agent server does not work in ${worktreePath} (${error.message}): its Permissions.WorktreeRoot must name the worktree root of the backend.`;
  return new ReviewAgentError('agentUnavailable', message, { isRetryable: false, cause: error });
}

class Session {
  readonly #options: SessionOptions;
  readonly #threadId: string;
  #server: AgentConnection;
  #leave: () => void = () => undefined;
  /** Ended turns of this thread, and the waits for one. */
  readonly #ended = new Map<string, PromiseWithResolvers<TurnEnd>>();
  #lost: ReturnType<AgentConnection['lost']>;
  #startedTurns = 0;
  #usage: TokenUsage | undefined;

  constructor(options: SessionOptions, threadId: string) {
    this.#options = options;
    this.#threadId = threadId;
    this.#server = options.server;
    this.#lost = this.#join();
  }

  /** Joins the thread over the current connection. @returns a `promise` that rejects when the connection is lost */
  #join(): ReturnType<AgentConnection['lost']> {
    const { submissions, hooks } = this.#options;
    this.#leave = this.#server.join(this.#threadId, {
      onNotification: (notification) => this.#hear(notification),
      onTool: (call) => {
        hooks.onActivity();
        return submissions.answer(call).catch((error: unknown) => notLookedAt(error, this.#options));
      },
    });
    return this.#server.lost();
  }

  async run(): Promise<ReviewSubmission> {
    const { submissions, prompt } = this.#options;
    const first = await this.#ask(prompt.task);
    if (submissions.draft || first.status !== 'completed') return this.#outcome(first);
    submissions.reopen();
    return this.#outcome(await this.#ask(reminder));
  }

  async close(): Promise<void> {
    this.#leave();
    this.#lost.stop();
    const { limits } = this.#options;
    // The thread of a server that is gone cannot be archived, and does no harm.
    await endThread(this.#server, this.#threadId, limits).catch(() => undefined);
  }

  /** Result of the session. The submitted draft counts, also when the turn failed after it. */
  #outcome(turn: Turn): ReviewSubmission {
    const { submissions } = this.#options;
    const { draft, resolved, withdrawn } = submissions;
    if (draft) {
      const usage = this.#usage && { usage: this.#usage };
      return { threadId: this.#threadId, turnId: turn.id, ...draft, resolved, withdrawn, ...usage };
    }
    throw failureOf(turn);
  }

  /** Runs one turn to its end. */
  async #ask(text: string): Promise<Turn> {
    const { hooks } = this.#options;
    const { signal } = hooks;
    const threadId = this.#threadId;
    await hooks.onTurn({ threadId, turnId: null });
    signal.throwIfAborted();
    const turnId = await this.#start(text);
    const aborted = abortOf(signal);
    try {
      hooks.onActivity();
      const recorded = hooks.onTurn({ threadId, turnId });
      const ended = this.#end(turnId).promise;
      const failing = recorded.then(() => ended);
      const { turn, tokenUsage } = await Promise.race([this.#heard(turnId, failing), aborted.promise]);
      this.#addUsage(tokenUsage ?? turn.tokenUsage);
      return turn;
    } catch (reason) {
      await this.#endTurn(turnId);
      const error = asFailure(reason);
      const { draft } = this.#options.submissions;
      if (draft && !signal.aborted && error instanceof ReviewAgentError) return lostTurn(threadId, turnId);
      throw error;
    } finally {
      aborted.stop();
    }
  }

  /** Starts a turn, and returns its id. If the answer is lost and the turn has started, follows that turn. @throws ReviewAgentError */
  async #start(text: string): Promise<string> {
    const params = { threadId: this.#threadId, input: [{ type: 'text', text }] };
    for (;;) {
      try {
        // Not abortable: without its id, a started turn could not be ended.
        const answer = await this.#server.request('turn/start', params);
        this.#startedTurns += 1;
        return v.parse(Begun, answer).turn.id;
      } catch (error) {
        if (!(error instanceof AppServerConnectionError)) throw asFailure(error);
        const turn = (await this.#rejoin(error))[this.#startedTurns];
        if (!turn) continue;
        this.#startedTurns += 1;
        return turn.id;
      }
    }
  }

  /** Waits for the end of a turn, and reconnects after each lost connection. @throws Error of a connection that stays lost */
  async #heard(turnId: string, end: Promise<TurnEnd>): Promise<TurnEnd> {
    for (;;) {
      const lost = await Promise.race([end.then(() => undefined), this.#lost.promise.catch((error: Error) => error)]);
      if (!lost) return end;
      const turn = (await this.#rejoin(lost)).find(({ id }) => id === turnId);
      if (!turn || turn.interruptedBy === 'crash') throw lost;
    }
  }

  /** Joins the thread over a new connection, with its tools: the agent server repeats an open call. @throws `lost`, as a failure */
  async #rejoin(lost: Error): Promise<readonly Turn[]> {
    const { connect, hooks, limits, logger, displayName } = this.#options;
    const threadId = this.#threadId;
    logger.info('a review reconnects', { review: displayName, reason: lost.message });
    const signal = AbortSignal.any([hooks.signal, AbortSignal.timeout(limits.reconnectMs)]);
    const answer = await untilReached(async () => {
      const server = await connect(signal);
      this.#leave();
      this.#lost.stop();
      this.#server = server;
      this.#lost = this.#join();
      return server.request('thread/resume', { threadId, dynamicTools: reviewTools() });
    }, signal).catch(() => {
      hooks.signal.throwIfAborted();
      throw asFailure(lost);
    });
    hooks.onActivity();
    const { turns } = v.parse(Resumed, answer).thread;
    for (const turn of turns) if (!runningStates.has(turn.status)) this.#end(turn.id).resolve({ turn });
    return turns;
  }

  /** Interrupts a turn and waits for its end, for a limited time. */
  async #endTurn(turnId: string): Promise<void> {
    const { limits } = this.#options;
    const threadId = this.#threadId;
    const deadline = AbortSignal.timeout(limits.endTurnMs);
    const over = abortOf(deadline);
    try {
      await this.#server.request('turn/interrupt', { threadId, turnId }, { signal: deadline });
      await Promise.race([this.#end(turnId).promise, this.#lost.promise, over.promise]);
    } catch {
      // The turn or its server has already ended.
    } finally {
      over.stop();
    }
  }

  #hear({ method, params }: RpcNotification): void {
    this.#options.hooks.onActivity();
    if (!endings.has(method)) return;
    const parsed = v.safeParse(Ended, params);
    if (parsed.success) this.#end(parsed.output.turn.id).resolve(parsed.output);
  }

  #end(turnId: string): PromiseWithResolvers<TurnEnd> {
    const known = this.#ended.get(turnId);
    if (known) return known;
    const end = Promise.withResolvers<TurnEnd>();
    this.#ended.set(turnId, end);
    return end;
  }

  #addUsage(usage: TokenUsage | undefined): void {
    if (!usage) return;
    const before = this.#usage ?? { inputTokens: 0, outputTokens: 0, totalTokens: 0 };
    this.#usage = {
      inputTokens: before.inputTokens + usage.inputTokens,
      outputTokens: before.outputTokens + usage.outputTokens,
      totalTokens: before.totalTokens + usage.totalTokens,
    };
  }
}

/** The model may try again; if it does not, there is no draft and the whole review is tried again. */
function notLookedAt(error: unknown, { logger, displayName }: SessionOptions): DynamicToolResult {
  const reason = messageOf(error);
  logger.warn('could not check a draft', { review: displayName, reason });
  return {
    success: false,
    errorCode: 'draftNotRead',
    errorMessage: 'The draft could not be checked. Hand it in again.',
  };
}

/** A turn whose end was not received. */
const lostTurn = (threadId: string, id: string): Turn => ({
  id,
  threadId,
  status: 'failed',
  items: [],
  startedAt: '',
});

/** Codes of turns that fail in the same way at each attempt. The next prompt after one that was too long is shorter. */
const lastingFailures = new Set(['upstreamUnauthorized', 'upstreamRejected', 'agentUnsuited']);

function failureOf({ status, error, interruptedBy }: Turn): ReviewAgentError {
  if (status === 'completed') {
    return new ReviewAgentError('draftMissing', 'The agent ended twice without handing in a draft.');
  }
  if (status === 'cancelled') {
    return new ReviewAgentError('turnFailed', `The turn was cancelled (${interruptedBy ?? 'by an unknown client'}).`);
  }
  const { code = 'unknown', message = 'The turn failed.', retryAfterMs } = error ?? {};
  const isRetryable = !lastingFailures.has(code);
  return new ReviewAgentError('turnFailed', `${message} (${code})`, {
    isRetryable,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  });
}

/** Rejects when the signal aborts; `stop` ends the listening. */
function abortOf(signal: AbortSignal): { readonly promise: Promise<never>; readonly stop: () => void } {
  const { promise, reject } = Promise.withResolvers<never>();
  promise.catch(() => undefined);
  const onAbort = () => reject(signal.reason);
  if (signal.aborted) onAbort();
  else signal.addEventListener('abort', onAbort, { once: true });
  return { promise, stop: () => signal.removeEventListener('abort', onAbort) };
}
