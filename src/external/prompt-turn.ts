import * as v from 'valibot';
import type { DelegatedReport } from '../agent/index.ts';
import { type ApprovalDecision, planStatuses, type QuestionForm } from '../protocol/index.ts';
import { KnownCall } from './known-call.ts';
import { MessageChunk, type PermissionRequest, PlanEntries, ToolCallUpdate } from './messages.ts';
import { needOf, outcomeOf } from './permission.ts';

export interface PromptTurnOptions {
  readonly agent: string;
  readonly workspacePath: string;
  readonly report: DelegatedReport;
  /** Called before a question. The returned function is called when a user, a rule or the policy has allowed the call. */
  readonly prepareGrant: (call: KnownCall) => Promise<() => void>;
}

const maxSteps = 50;

/** One prompt of a session: turns updates of the agent into reports of a turn. */
export class PromptTurn {
  readonly #options: PromptTurnOptions;
  readonly #calls = new Map<string, KnownCall>();
  readonly #begun = new Set<string>();
  #plans = 0;
  #elicited = 0;
  /** Open links, by the id that the agent gave them. */
  readonly #links = new Map<string, AbortController>();
  #isOver = false;
  /** True once the agent has reported a system error, even if later messages look fine. */
  hasSystemError = false;

  constructor(options: PromptTurnOptions) {
    this.#options = options;
  }

  /** Counts a message of the agent, of any kind. */
  received(bytes: number): void {
    this.#options.report.received(bytes);
  }

  /** @returns false: an update of an unknown kind or shape, which is ignored */
  update(update: { readonly sessionUpdate: string } & Readonly<Record<string, unknown>>): boolean {
    switch (update.sessionUpdate) {
      case 'agent_message_chunk':
        return this.#text('agentMessage', update);
      case 'agent_thought_chunk':
        return this.#text('reasoningContent', update);
      case 'tool_call':
      case 'tool_call_update':
        return this.#call(update);
      case 'plan':
        return this.#plan(update);
      case 'session_info_update':
        this.hasSystemError ||= /"type":\s*"systemError"/.test(JSON.stringify(update['_meta'] ?? {}));
        return true;
      default:
        return false;
    }
  }

  /** Decides a question of the agent, until the agent withdraws it. */
  async permit({ toolCall, options }: v.InferOutput<typeof PermissionRequest>, signal: AbortSignal) {
    const { agent, workspacePath, report } = this.#options;
    const call = this.#known(toolCall.toolCallId);
    call.merge(toolCall);
    this.#begin(call);
    const question = { call: call.shown(), need: needOf(agent, call, workspacePath, options) };
    const grant = await this.#options.prepareGrant(call);
    if (this.#isOver || signal.aborted) return outcomeOf('cancel', options);
    const decision: ApprovalDecision = await report.ask(question, signal);
    if (signal.aborted) this.#end(call, 'cancelled', '');
    else if (decision !== 'decline' && decision !== 'cancel') grant();
    // Some agents send no update about a call that was declined.
    else this.#end(call, 'declined', '');
    return outcomeOf(decision, options);
  }

  /** Asks the user a question of the agent, until the agent withdraws it or reports that its link is finished. */
  async elicit(form: QuestionForm, toolCallId: string | undefined, linkId: string | undefined, signal: AbortSignal) {
    const finished = new AbortController();
    if (linkId !== undefined) this.#links.set(linkId, finished);
    try {
      const withdrawn = AbortSignal.any([signal, finished.signal]);
      this.#elicited += 1;
      const callId = toolCallId ?? `question_${this.#elicited}`;
      const answer = await this.#options.report.elicit(form, callId, withdrawn);
      return finished.signal.aborted ? { action: 'accept' } : answer;
    } finally {
      if (linkId !== undefined) this.#links.delete(linkId);
    }
  }

  /** The agent reports that the user has finished with a link. */
  completeLink(linkId: string): void {
    this.#links.get(linkId)?.abort();
  }

  /** Ends the calls that the agent has left open. */
  finish(): void {
    this.#isOver = true;
    for (const call of this.#calls.values()) this.#end(call, 'cancelled', call.result);
  }

  #text(type: 'agentMessage' | 'reasoningContent', update: unknown): boolean {
    const parsed = v.safeParse(MessageChunk, update);
    if (!parsed.success || parsed.output.content.text === undefined) return false;
    this.#options.report.text(type, parsed.output.content.text, parsed.output.messageId);
    return true;
  }

  #call(update: unknown): boolean {
    const parsed = v.safeParse(ToolCallUpdate, update);
    if (!parsed.success) return false;
    const call = this.#known(parsed.output.toolCallId);
    const output = call.merge(parsed.output);
    if (call.isReportable) this.#begin(call);
    if (output !== '' && this.#begun.has(call.callId)) this.#options.report.output(call.callId, output);
    if (call.isOver) this.#end(call, call.status === 'failed' ? 'failed' : 'completed', call.result);
    return true;
  }

  #plan(update: unknown): boolean {
    const parsed = v.safeParse(PlanEntries, update);
    if (!parsed.success) return false;
    this.#plans += 1;
    const steps = parsed.output.entries.slice(0, maxSteps).map(({ content, status }) => ({
      step: content,
      status: planStatuses.find((known) => known === status) ?? ('pending' as const),
    }));
    this.#options.report.plan(`plan_${this.#plans}`, steps);
    return true;
  }

  #known(callId: string): KnownCall {
    const call = this.#calls.get(callId) ?? new KnownCall(callId);
    this.#calls.set(callId, call);
    return call;
  }

  #begin(call: KnownCall): void {
    if (this.#begun.has(call.callId)) return;
    this.#begun.add(call.callId);
    this.#options.report.begin(call.shown());
  }

  #end(call: KnownCall, outcome: 'completed' | 'failed' | 'declined' | 'cancelled', text: string): void {
    this.#begin(call);
    this.#options.report.end(call.callId, { outcome, text, exitCode: call.exitCode });
    call.release();
  }
}
