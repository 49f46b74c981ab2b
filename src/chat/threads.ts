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
  /** Call when the turn is over. */
  readonly close: () => Promise<void>;
}

/** The thread of a session: the same one for the same name, also after a restart. */
export function threadIdOf(sessionId: string): string {
  return `thread_api_${createHash('sha256').update(sessionId).digest('hex').slice(0, 24)}`;
}

/**
 * Threads behind requests. A session has a thread for good, which holds all messages and results of tools: of the messages
 * that the client sends again only the new end counts. A request without a session gets a thread of its own, gone when it is
 * answered.
 */
export class Threads {
  readonly #runtime: Runtime;
  readonly #api: Config['Api'];

  constructor(runtime: Runtime, api: Config['Api']) {
    this.#runtime = runtime;
    this.#api = api;
  }

  open(plan: Plan, model: string | undefined): OpenThread {
    const options = { ...plan.options, ...this.#policy(), model };
    return plan.sessionId === undefined ? this.#ephemeral(plan, options) : this.#session(plan, plan.sessionId, options);
  }

  #ephemeral({ conversation }: Plan, options: TurnOptions): OpenThread {
    const { thread, announce } = this.#runtime.threads.start({
      identity: { channelName: 'api' },
      // The list of traces shows the name of the caller's user.
      displayName: options.sender?.toWellFormed().slice(0, 200),
      config: this.#config(),
      isEphemeral: true,
    });
    announce();
    return {
      threadId: thread.id,
      input: conversation.input,
      options: { ...options, ...pastOf(conversation) },
      close: async () => (await this.#runtime.threads.delete(thread.id))(),
    };
  }

  #session({ conversation }: Plan, sessionId: string, options: TurnOptions): OpenThread {
    const threadId = threadIdOf(sessionId);
    const known = this.#find(threadId);
    const config = this.#config(conversation.instructions);
    if (!known) this.#begin(threadId, sessionId, config);
    else if (differs(config, known.config)) this.#runtime.threads.updateConfig(threadId, config);
    const isContinued = known?.turns?.some(({ status }) => status === 'completed') === true;
    const { toolAnswers } = conversation;
    // Instructions are stored with the thread, so they are not sent twice.
    const { instructions: _, ...history } = pastOf(conversation);
    return {
      threadId,
      input: conversation.input,
      options: { ...options, ...(isContinued ? { toolResults: toolAnswers } : history) },
      close: async () => {},
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

  #begin(threadId: string, sessionId: string, config: ThreadConfig): void {
    const identity = { channelName: 'api', channelContext: sessionId };
    this.#runtime.threads.start({ threadId, identity, displayName: sessionId.slice(0, 200), config }).announce();
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
    return approvalPolicy === 'default' ? { approvalPolicy, approvalTimeoutMs } : { approvalPolicy };
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
