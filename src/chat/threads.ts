import { createHash } from 'node:crypto';
import { AgentError, type Runtime, type TurnOptions } from '../agent/index.ts';
import { apiApprovalPolicyOf, type Config } from '../config/index.ts';
import { defaults, type InputPart, type Thread, type ThreadConfig, type Turn } from '../protocol/index.ts';
import type { Plan } from './plan.ts';

/** A thread that is ready for the turn of a request. */
export interface OpenThread {
  readonly threadId: string;
  readonly input: readonly InputPart[];
  readonly options: TurnOptions;
  /** Closed when the turn is over. */
  readonly isSingle: boolean;
}

/** The thread of a session: the same one for the same name, also after a restart. */
export function threadIdOf(sessionId: string): string {
  return `thread_api_${createHash('sha256').update(sessionId).digest('hex').slice(0, 24)}`;
}

/**
 * Threads behind requests. A session, or a chain of stored responses, has a thread for good, which holds all messages and results of tools: of the messages
 * that the client sends again only the new end counts. A request without a session gets a thread of its own, gone when it is
 * answered. With a key the thread is stored, so that a repetition after a kill of the server joins its turn.
 */
export class Threads {
  readonly #runtime: Runtime;
  readonly #api: Config['Api'];
  readonly #onBug: (error: unknown) => unknown;
  /** Ids of open threads that a conversation without stored responses names. */
  readonly #traced = new Set<string>();
  #hasSwept = false;

  constructor(runtime: Runtime, api: Config['Api'], onBug: (error: unknown) => unknown) {
    this.#runtime = runtime;
    this.#api = api;
    this.#onBug = onBug;
  }

  /** @param isNamed the caller can ask for the turn of a request without a session again */
  open(plan: Plan, model: string | undefined, isNamed: boolean): OpenThread {
    const options = { ...plan.options, ...this.#policy(), model };
    const threadId = plan.response?.threadId ?? (plan.sessionId === undefined ? undefined : threadIdOf(plan.sessionId));
    if (threadId !== undefined) return this.#stored(plan, threadId, options);
    return this.#single(plan, options, isNamed);
  }

  #single({ conversation, response }: Plan, options: TurnOptions, isNamed: boolean): OpenThread {
    if (isNamed) this.#sweep();
    const id = isNamed ? undefined : response?.tracedAs;
    const { thread, announce } = this.#runtime.threads.start({
      // A concurrent second request of the conversation gets a separate trace.
      ...(id !== undefined && !this.#traced.has(id) && { threadId: id }),
      identity: { channelName: 'api' },
      // The list of traces shows the name of the caller's user.
      displayName: options.sender?.toWellFormed().slice(0, 200),
      config: this.#config(),
      ...(isNamed ? { isTransient: true } : { isEphemeral: true }),
    });
    announce();
    if (thread.id === id) this.#traced.add(id);
    return {
      threadId: thread.id,
      input: conversation.input,
      options: { ...options, ...pastOf(conversation) },
      isSingle: true,
    };
  }

  /** Deletes the thread of a request without a session. */
  async close(threadId: string): Promise<void> {
    (await this.#runtime.threads.delete(threadId))();
    this.#traced.delete(threadId);
  }

  /** Deletes threads that earlier processes could not close, before the first one of this process. */
  #sweep(): void {
    if (this.#hasSwept) return;
    this.#hasSwept = true;
    void this.#runtime.threads.sweepTransient().catch(this.#onBug);
  }

  /** The thread of a session, or of the responses before. */
  #stored({ conversation, sessionId, response }: Plan, threadId: string, options: TurnOptions): OpenThread {
    const known = this.#find(threadId);
    // A response does not have the instructions of the one before.
    const config = this.#config(response ? [] : conversation.instructions);
    if (!known) this.#begin(threadId, response ? undefined : sessionId, config);
    else if (differs(config, known.config)) this.#runtime.threads.updateConfig(threadId, config);
    const isContinued = known?.turns?.some(({ status }) => status === 'completed') === true;
    const { toolAnswers } = conversation;
    const { instructions, ...history } = pastOf(conversation);
    return {
      threadId,
      input: conversation.input,
      options: {
        ...options,
        ...(isContinued ? { toolResults: toolAnswers } : history),
        // The thread of a session has its instructions, so they are not sent twice.
        ...(response && { instructions }),
      },
      isSingle: sessionId === undefined,
    };
  }

  /** Finds a turn among the newest of a thread; undefined: it is not stored. */
  findTurn(threadId: string, turnId: string): Turn | undefined {
    return this.#find(threadId)?.turns?.find(({ id }) => id === turnId);
  }

  #find(threadId: string): Thread | undefined {
    try {
      return this.#runtime.threads.read(threadId, { includeTurns: true, turnLimit: defaults.chat.lookBackTurns });
    } catch (error) {
      if (error instanceof AgentError && error.reason === 'threadNotFound') return undefined;
      throw error;
    }
  }

  #begin(threadId: string, sessionId: string | undefined, config: ThreadConfig): void {
    const identity = { channelName: 'api', channelContext: sessionId };
    this.#runtime.threads.start({ threadId, identity, displayName: sessionId?.slice(0, 200), config }).announce();
  }

  /** Set on the thread rather than on the turn, so that sub-agents inherit it. */
  #config(instructions: readonly string[] = []): ThreadConfig {
    const { EnabledTools } = this.#api;
    return {
      approvalPolicy: this.#policy().approvalPolicy,
      enabledTools: EnabledTools.length > 0 ? EnabledTools : undefined,
      ...(instructions.length > 0 && { agentInstructions: instructions.join('\n\n') }),
    };
  }

  #policy() {
    const approvalPolicy = apiApprovalPolicyOf(this.#api);
    const approvalTimeoutMs = this.#api.ApprovalTimeoutSeconds * 1000;
    const asked = { approvalPolicy, isUnattended: true };
    return approvalPolicy === 'default' ? { ...asked, approvalTimeoutMs } : asked;
  }
}

/** All that the caller sent before its question; results of its tools are the last of it. */
function pastOf({ instructions, history, toolMessages }: Plan['conversation']) {
  return { instructions, history: [...history, ...toolMessages] };
}

function differs(wanted: ThreadConfig, present: ThreadConfig = {}): boolean {
  const keys = Object.keys(wanted) as (keyof ThreadConfig)[];
  return keys.some((key) => JSON.stringify(wanted[key]) !== JSON.stringify(present[key]));
}
