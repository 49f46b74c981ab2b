import { randomUUID } from 'node:crypto';
import type { Delegated, TurnTokens } from '../../../../machines/index.ts';
import { type ApprovalDecision, type ApprovalPolicy, defaults, type InputPart } from '../../../protocol/index.ts';
import {
  type Delegate,
  type DelegatedCall,
  type DelegatedQuestion,
  type DelegatedReport,
  type DelegatedSession,
  type DelegatedUse,
  DelegateError,
} from '../../delegate.ts';
import { contentOf, imagePathsIn } from '../../history.ts';
import type { ContentPart } from '../../model.ts';
import type { ThreadEvent } from '../feed.ts';
import type { TurnOptions } from '../types.ts';
import type { TurnApprovals } from './approvals.ts';
import { type ReviewedCall, reviewCall } from './call-review.ts';
import type { TurnHooks } from './hooks.ts';
import type { TurnHost } from './host.ts';
import { TurnImages } from './images.ts';
import type { TurnItems } from './items.ts';
import { TurnVolume } from './volume.ts';

export interface TurnDelegationOptions {
  readonly host: TurnHost;
  readonly turnId: string;
  readonly delegate: Delegate;
  readonly items: TurnItems;
  readonly input: readonly InputPart[];
  readonly options: TurnOptions;
  readonly policy: ApprovalPolicy;
  readonly isPlanning: boolean;
  readonly approvals: TurnApprovals;
  readonly hooks: TurnHooks;
  readonly publish: (event: ThreadEvent) => void;
  /** The agent asks for an approval. */
  readonly onAsked: (requestId: string) => void;
  /** The agent has withdrawn its question. */
  readonly onWithdrawn: (requestId: string) => void;
  readonly onTokensUsed: (tokens: TurnTokens) => void;
}

type Command = ReturnType<TurnItems['beginCommand']>;

interface OpenCall {
  readonly call: DelegatedCall;
  readonly command: Command | undefined;
  /** Characters of output so far. */
  length: number;
  readonly began: number;
}

interface Asked {
  readonly reviewed: ReviewedCall;
  readonly resolve: (decision: ApprovalDecision) => void;
}

/**
 * A turn of an external agent: its reports become items, and its questions become approvals of the thread.
 * Its text is redacted and bounded as the text of our own tools.
 */
export class TurnDelegation {
  readonly #options: TurnDelegationOptions;
  readonly #open = new Map<string, OpenCall>();
  readonly #asked = new Map<string, Asked>();
  /** Questions of the agent that users have not received yet: the machine decides when. */
  #queued: ReviewedCall[] = [];
  #isOver = false;
  readonly #volume: TurnVolume;
  /** Aborted when the agent sends more than a turn takes: it is asked to stop, and ended when it does not. */
  readonly #overflow = new AbortController();

  constructor(options: TurnDelegationOptions) {
    this.#options = options;
    const { name } = options.delegate;
    this.#volume = new TurnVolume(options.items, (limit) => {
      const message = `The agent ${name} sent more than ${limit}, which is the limit of a turn. The turn was cut off: ask for less in one turn.`;
      return new DelegateError('answerTooLong', message);
    });
  }

  /** Shows the prompt to the hooks of the user, then has the agent start while the files are saved. @throws PromptBlockedError, DelegateError for a turn that it must not do */
  async prepare(signal: AbortSignal): Promise<void> {
    const { hooks, input, host, delegate, isPlanning, options } = this.#options;
    const refuse = (why: string) => {
      throw new DelegateError('agentUnsuited', `The agent ${delegate.name} cannot do this turn: ${why}.`);
    };
    // An external agent need not ask before a change: only our own agent is restricted to reading.
    if (host.config.readOnly) refuse('this conversation is read-only, and nothing keeps it from changing files');
    if (isPlanning) refuse('the turn only plans, and nothing keeps it from changing files');
    if ((options.clientTools ?? []).length > 0) refuse('it does not call tools of the client');
    await hooks.submitPrompt(input, signal);
    signal.throwIfAborted();
    delegate.prepare(host.threadId);
  }

  /** Runs the turn. Rejects as `Delegate.run` does, and with a DelegateError when the agent sends more than a turn takes. */
  async run(interrupted: AbortSignal): Promise<Delegated> {
    const signal = AbortSignal.any([interrupted, this.#overflow.signal]);
    const { host, turnId, delegate, input, options, isPlanning } = this.#options;
    const { threadId, workspacePath, store, config } = host;
    const images = await new TurnImages(host).read(imagePathsIn(input));
    const kept = store.agentSession(threadId);
    if (kept?.agent !== delegate.name) this.#noteUnseen();
    // Withdraws the agent's questions before the request to stop: some agents wait for the answers.
    const withdraw = () => this.#withdraw();
    signal.addEventListener('abort', withdraw, { once: true });
    try {
      const order = {
        ...{ threadId, turnId, workspacePath, isPlanning },
        input: [...contextOf(options), ...contentOf(input, images)],
        model: options.model ?? config.model,
        effort: options.effort ?? config.effort,
        mode: config.agentMode,
        session: kept?.agent === delegate.name ? kept : undefined,
        keep: (session: DelegatedSession) => store.putAgentSession(threadId, session),
        report: this.#report(signal),
      };
      return await delegate.run(order, signal);
    } finally {
      signal.removeEventListener('abort', withdraw);
      this.#withdraw();
      this.#closeCalls();
      this.#isOver = true;
    }
  }

  /** Adds a notice when the thread has earlier turns: the agent gets this prompt only. */
  #noteUnseen(): void {
    const { host, turnId, delegate, items } = this.#options;
    if (!host.store.turns(host.threadId, { limit: 2 }).some(({ id }) => id !== turnId)) return;
    const text = `${delegate.name} has not seen the earlier turns of this conversation: put all facts that it needs into your prompt.`;
    items.add({ type: 'systemNotice', kind: 'agentHasNotSeen', text: host.clean(text) });
  }

  /** Requests the approvals that the agent needs. */
  ask(): void {
    const queued = this.#queued;
    this.#queued = [];
    if (queued.length > 0) this.#options.approvals.ask(queued);
  }

  /** An approval has been decided. */
  decided(requestId: string): void {
    const asked = this.#asked.get(requestId);
    if (!asked) return;
    this.#asked.delete(requestId);
    asked.resolve(asked.reviewed.decision?.word ?? 'decline');
  }

  #withdrawOne(requestId: string): void {
    const asked = this.#asked.get(requestId);
    if (!asked) return;
    this.#asked.delete(requestId);
    this.#queued = this.#queued.filter((queued) => queued.requestId !== requestId);
    this.#options.approvals.withdraw(requestId);
    asked.resolve('cancel');
    this.#options.onWithdrawn(requestId);
  }

  #withdraw(): void {
    this.#options.approvals.withdraw();
    for (const [requestId, { resolve }] of [...this.#asked]) {
      this.#asked.delete(requestId);
      resolve('cancel');
    }
    this.#queued = [];
  }

  /** A call without an end is over with the turn. */
  #closeCalls(): void {
    for (const callId of [...this.#open.keys()]) this.#end(callId, { outcome: 'cancelled', text: '' });
  }

  #report(signal: AbortSignal): DelegatedReport {
    const { host, items, options, delegate } = this.#options;
    /** Reports after an interrupt or the end belong to no turn. */
    const unlessOver =
      <A extends readonly unknown[]>(act: (...args: A) => void) =>
      (...args: A): void => {
        if (signal.aborted || this.#isOver) return;
        try {
          act(...args);
          this.#volume.checkItems();
        } catch (error) {
          if (!(error instanceof DelegateError)) throw error;
          this.#overflow.abort(error);
        }
      };
    return {
      prompting: () => options.beforeEffects?.(delegate.name),
      received: unlessOver((bytes) => this.#volume.addBytes(bytes)),
      text: unlessOver((type, text) => {
        this.#volume.addText(text);
        items.append(type, host.clean(text));
      }),
      begin: unlessOver((call) => this.#begin(call)),
      output: unlessOver((callId, text) => this.#output(callId, text)),
      end: unlessOver((callId, end) => this.#end(callId, end)),
      plan: unlessOver((callId, steps) => {
        items.add<'plan'>({
          type: 'plan',
          callId,
          steps: steps.map((step) => ({ ...step, step: host.clean(step.step) })),
        });
      }),
      notice: unlessOver((kind, text) => {
        items.add({ type: 'systemNotice', kind, text: host.clean(text) });
      }),
      // Also of a turn that was interrupted: it was paid for.
      used: (use) => this.#options.onTokensUsed(tokensOf(use)),
      requested: (request) => host.tracer?.agentRequested(this.#place, this.#options.delegate.name, request),
      ask: (question, withdrawn) =>
        signal.aborted ? Promise.resolve('cancel') : this.#ask(question, signal, withdrawn),
    };
  }

  #begin(call: DelegatedCall): void {
    const { host, items } = this.#options;
    const { callId, tool, command } = call;
    if (this.#open.has(callId)) return;
    this.#volume.checkOpen(this.#open.size + 1);
    const text = host.clean(JSON.stringify(call.arguments)).slice(0, defaults.agent.commandOutputChars);
    this.#volume.addArguments(text);
    items.add({ type: 'toolCall', callId, tool, source: 'agent', arguments: text });
    host.tracer?.toolStarted(this.#place, { callId, tool, arguments: text, source: 'agent' });
    this.#open.set(callId, {
      call,
      command: command === undefined ? undefined : items.beginCommand(callId, host.clean(command)),
      length: 0,
      began: performance.now(),
    });
  }

  /** Appends output up to the limit of the item. */
  #output(callId: string, text: string): void {
    const open = this.#open.get(callId);
    if (!open?.command || open.length >= defaults.agent.commandOutputChars) return;
    const piece = text.slice(0, defaults.agent.commandOutputChars - open.length);
    open.length += piece.length;
    open.command.append(this.#options.host.clean(piece));
  }

  #end(callId: string, { outcome, text, exitCode }: Parameters<DelegatedReport['end']>[1]): void {
    const open = this.#open.get(callId);
    if (!open) return;
    this.#open.delete(callId);
    const { host, items } = this.#options;
    const { tool } = open.call;
    open.command?.end({ outcome, ...(exitCode !== undefined && { exitCode }) });
    const item = items.add<'toolResult'>({
      ...{ type: 'toolResult', callId, tool, outcome },
      text: host.clean(text.slice(0, defaults.agent.commandOutputChars)),
      durationMs: Math.round(performance.now() - open.began),
    });
    host.tracer?.toolEnded(host.threadId, item);
  }

  async #ask(question: DelegatedQuestion, signal: AbortSignal, withdrawn?: AbortSignal): Promise<ApprovalDecision> {
    const { approvals } = this.#options;
    const reviewed = await this.#review(question);
    if (signal.aborted || withdrawn?.aborted || this.#isOver) return 'cancel';
    if (question.isGranted && !isDenied(reviewed)) return 'accept';
    if (reviewed.need) approvals.note(reviewed);
    if (reviewed.refusal !== undefined) return 'decline';
    if (reviewed.decision || !reviewed.need) return reviewed.decision?.word ?? 'accept';
    return new Promise((resolve) => {
      this.#asked.set(reviewed.requestId, { reviewed, resolve });
      this.#queued.push(reviewed);
      this.#options.onAsked(reviewed.requestId);
      withdrawn?.addEventListener('abort', () => this.#withdrawOne(reviewed.requestId), { once: true });
    });
  }

  /** A command is judged as a command of our own: by the rules of the user, earlier grants and the policy. */
  async #review({ call, need, isOurs }: DelegatedQuestion): Promise<ReviewedCall> {
    const { host, policy, isPlanning } = this.#options;
    const { workspacePath, isGranted, rules, config } = host;
    const isReadOnly = config.readOnly === true;
    const made = { callId: call.callId, name: call.tool, arguments: JSON.stringify(call.arguments) };
    const isCommand = call.command !== undefined && need !== undefined;
    const wanted = isOurs ? call.tool : isCommand ? 'Exec' : undefined;
    const tool = host.tools().find(({ name, source }) => name === wanted && source === 'builtin');
    if (tool) {
      const args = isOurs ? made.arguments : JSON.stringify({ command: call.command });
      const about = { workspacePath, policy, isGranted, rules, isPlanning, isReadOnly };
      const own = { ...made, name: tool.name, arguments: args };
      const reviewed = await reviewCall(own, { ...about, toolOf: () => tool, toolNames: () => [tool.name] });
      return withReason(reviewed, need?.reason);
    }
    const requestId = `approval_${randomUUID()}`;
    const reviewed = { call: made, tool: undefined, args: undefined, refusal: undefined, need, requestId };
    if (!need) return { ...reviewed, decision: undefined };
    if (isReadOnly || isPlanning) return { ...reviewed, decision: { word: 'decline', by: 'policy' } };
    const isAllowed = policy === 'autoApprove' || isGranted(need.scopeKey);
    if (isAllowed) return { ...reviewed, decision: { word: 'accept', by: 'policy' } };
    return { ...reviewed, decision: policy === 'interrupt' ? { word: 'decline', by: 'policy' } : undefined };
  }

  get #place() {
    return { threadId: this.#options.host.threadId, turnId: this.#options.turnId };
  }
}

/** Adds the agent's name to the reason of our own approval need. */
function withReason(reviewed: ReviewedCall, asks: string | undefined): ReviewedCall {
  const { need } = reviewed;
  if (!need || asks === undefined) return reviewed;
  return { ...reviewed, need: { ...need, reason: need.reason === undefined ? asks : `${asks} ${need.reason}` } };
}

/** Refused by a rule, not for want of an answer. */
const isDenied = ({ refusal, need }: ReviewedCall): boolean => refusal !== undefined && need === undefined;

/** Instructions of the caller and the conversation so far, which it sends with every request, as texts before the prompt. */
function contextOf({ instructions = [], history = [] }: TurnOptions): readonly ContentPart[] {
  const said = history.flatMap((message) => {
    if (message.role === 'user') return [`User: ${wordsOf(message.content)}`];
    return message.role === 'assistant' && message.text !== '' ? [`Assistant: ${message.text}`] : [];
  });
  const texts = [...instructions, ...(said.length > 0 ? [`The conversation so far:\n${said.join('\n')}`] : [])];
  return texts.map((text) => ({ type: 'text', text }));
}

const wordsOf = (content: readonly ContentPart[]): string =>
  content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');

const tokensOf = (use: DelegatedUse): TurnTokens => ({
  inputTokens: use.inputTokens,
  outputTokens: use.outputTokens,
  cachedInputTokens: use.cachedInputTokens ?? 0,
  reasoningTokens: use.reasoningTokens ?? 0,
  costUsd: use.costUsd ?? null,
});
