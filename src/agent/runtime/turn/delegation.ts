import { randomUUID } from 'node:crypto';
import type { Delegated, Resumption, TurnTokens } from '../../../../machines/index.ts';
import { type ApprovalDecision, defaults } from '../../../protocol/index.ts';
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
import { timestamp } from '../clock.ts';
import type { TurnOptions } from '../types.ts';
import type { TurnApprovals } from './approvals.ts';
import { type ReviewedCall, reviewCall } from './call-review.ts';
import type { TurnContext } from './context.ts';
import type { TurnHooks } from './hooks.ts';
import { TurnImages } from './images.ts';
import type { TurnItems } from './items.ts';
import { addKnownResults, announceResumption, lostCalls } from './resumption.ts';
import { TurnVolume } from './volume.ts';

export interface TurnDelegationOptions {
  readonly turn: TurnContext;
  readonly delegate: Delegate;
  readonly approvals: TurnApprovals;
  readonly hooks: TurnHooks;
  /** The agent asks for an approval. */
  readonly onAsked: (requestId: string) => void;
  /** The agent has withdrawn its question. */
  readonly onWithdrawn: (requestId: string) => void;
  readonly onTokensUsed: (tokens: TurnTokens) => void;
  /** The agent has reported work. */
  readonly onWorked: (isFinishedCall: boolean) => void;
}

/** Key of a sent prompt among the stored calls. No agent uses it as the id of a call. */
const promptCall = 'session/prompt';

/** Prompt for an agent that has refused the last one because of a limit. */
const afterLimit = [
  { type: 'text', text: 'Your usage limit is over. Continue with the last prompt; do not repeat finished work.' },
] as const;

/** Prompt for an agent whose process ended in the turn. */
const continuation = [
  {
    type: 'text',
    text: 'Your host was restarted, and your process with it, while you worked on the last prompt. A call that was running may have had its effect: check before you repeat it. Then continue with that prompt.',
  },
] as const;

type Command = ReturnType<TurnItems['beginCommand']>;

interface OpenCall {
  readonly call: DelegatedCall;
  readonly command: Command | undefined;
  /** Characters of output so far. */
  length: number;
  readonly began: number;
}

/**
 * A turn of an external agent: its reports become items, and its questions become approvals of the thread.
 * Its text is redacted and bounded as the text of our own tools.
 */
export class TurnDelegation {
  readonly #turn: TurnContext;
  readonly #options: TurnDelegationOptions;
  readonly #open = new Map<string, OpenCall>();
  #isOver = false;
  #isPrompted = false;
  /** The agent has the prompt, and has refused to work on it because of a limit. */
  #hasRefused = false;
  readonly #volume: TurnVolume;
  /** Aborted when the agent sends more than a turn takes: it is asked to stop, and ended when it does not. */
  readonly #overflow = new AbortController();

  constructor(options: TurnDelegationOptions) {
    this.#turn = options.turn;
    this.#options = options;
    const { name } = options.delegate;
    this.#volume = new TurnVolume(options.turn.record.items, (limit) => {
      const message = `The agent ${name} sent more than ${limit}, which is the limit of a turn. The turn was cut off: ask for less in one turn.`;
      return new DelegateError('answerTooLong', message);
    });
  }

  /** Shows the prompt to the hooks of the user, then has the agent start while the files are saved. @throws PromptBlockedError, DelegateError for a turn that it must not do */
  async prepare(signal: AbortSignal): Promise<void> {
    const { hooks, delegate } = this.#options;
    const { thread, input, isPlanning, options, resumed } = this.#turn;
    const refuse = (why: string) => {
      throw new DelegateError('agentUnsuited', `The agent ${delegate.name} cannot do this turn: ${why}.`);
    };
    // An external agent need not ask before a change: only our own agent is restricted to reading.
    if (thread.config.readOnly) refuse('this conversation is read-only, and nothing keeps it from changing files');
    if (isPlanning) refuse('the turn only plans, and nothing keeps it from changing files');
    if ((options.clientTools ?? []).length > 0) refuse('it does not call tools of the client');
    if (resumed) announceResumption(this.#turn, []);
    await hooks.submitPrompt(input, signal);
    signal.throwIfAborted();
    delegate.prepare(thread.id);
  }

  /** Takes over a turn of an earlier process. The agent ended with that process, so the outcome of its open calls is unknown. */
  async resume(signal: AbortSignal): Promise<Resumption> {
    signal.throwIfAborted();
    const calls = lostCalls(this.#turn);
    const { name } = this.#options.delegate;
    const note = `the agent ${name} had to start again and is asked to continue; its most recent work is unknown`;
    const resumption = announceResumption(this.#turn, calls, this.#isContinued ? note : '');
    addKnownResults(this.#turn, calls);
    return resumption;
  }

  /** An earlier process has sent the prompt, which must not be sent again. */
  get #isContinued(): boolean {
    const { thread, place, resumed } = this.#turn;
    return resumed !== undefined && thread.store.turnActors.calls(place.threadId, place.turnId).has(promptCall);
  }

  /** Runs the turn. Rejects as `Delegate.run` does, and with a DelegateError when the agent sends more than a turn takes. */
  async run(interrupted: AbortSignal): Promise<Delegated> {
    const signal = AbortSignal.any([interrupted, this.#overflow.signal]);
    const { delegate } = this.#options;
    const { thread, place, input, options, isPlanning } = this.#turn;
    const { id: threadId, workspacePath, directories = [], store, config } = thread;
    const isContinued = this.#isContinued || this.#hasRefused;
    this.#isOver = false;
    const images = isContinued ? undefined : await new TurnImages(this.#turn).read(imagePathsIn(input));
    const kept = store.agentSession(threadId);
    if (kept?.agent !== delegate.name) this.#noteUnseen();
    // Withdraws the agent's questions before the request to stop: some agents wait for the answers.
    const withdraw = () => this.#options.approvals.withdraw();
    signal.addEventListener('abort', withdraw, { once: true });
    try {
      const order = {
        ...{ ...place, workspacePath, directories, isPlanning, isContinued },
        input: this.#hasRefused
          ? afterLimit
          : isContinued
            ? continuation
            : [...contextOf(options), ...contentOf(input, images)],
        model: options.model ?? config.model,
        effort: options.effort ?? config.effort,
        mode: config.agentMode,
        options: config.agentOptions ?? {},
        session: kept?.agent === delegate.name ? kept : undefined,
        keep: (session: DelegatedSession) => store.putAgentSession(threadId, session),
        report: this.#report(signal),
      };
      return await delegate.run(order, signal);
    } catch (error) {
      this.#hasRefused ||= this.#isPrompted && error instanceof DelegateError && error.code.startsWith('upstream');
      throw error;
    } finally {
      signal.removeEventListener('abort', withdraw);
      withdraw();
      this.#closeCalls();
      this.#isOver = true;
    }
  }

  /** Adds a notice when the thread has earlier turns: the agent gets this prompt only. */
  #noteUnseen(): void {
    const { delegate } = this.#options;
    const { services, thread, place, record } = this.#turn;
    if (!thread.store.turns(thread.id, { limit: 2 }).some(({ id }) => id !== place.turnId)) return;
    const text = `${delegate.name} has not seen the earlier turns of this conversation: put all facts that it needs into your prompt.`;
    record.items.add({ type: 'systemNotice', kind: 'agentHasNotSeen', text: services.clean(text) });
  }

  /** A call without an end is over with the turn. */
  #closeCalls(): void {
    for (const callId of [...this.#open.keys()]) this.#end(callId, { outcome: 'cancelled', text: '' });
  }

  #report(signal: AbortSignal): DelegatedReport {
    const { delegate, approvals, onAsked } = this.#options;
    const { services, thread, place, record } = this.#turn;
    const { tracer, clean } = services;
    const { items } = record;
    /** Id of the message that grows; undefined: the agent names none. */
    let message: string | undefined;
    /** Reports after an interrupt or the end belong to no turn. */
    const unlessOver =
      <A extends readonly unknown[]>(act: (...args: A) => void) =>
      (...args: A): void => {
        if (signal.aborted || this.#isOver) return;
        try {
          act(...args);
          this.#volume.checkItems();
          this.#options.onWorked(false);
        } catch (error) {
          if (!(error instanceof DelegateError)) throw error;
          this.#overflow.abort(error);
        }
      };
    return {
      prompting: async () => {
        thread.beforeEffects(delegate.name);
        this.#isPrompted = true;
        if (!thread.isResumable) return;
        const started = { startedAt: timestamp(), tool: delegate.name, source: 'agent', kind: 'other' } as const;
        await record.saveCall(promptCall, { itemId: '', ...started });
      },
      received: unlessOver((bytes) => this.#volume.addBytes(bytes)),
      text: unlessOver((type, text, messageId) => {
        this.#volume.addText(text);
        if (messageId !== undefined && message !== undefined && messageId !== message) items.close();
        message = messageId ?? message;
        items.append(type, clean(text));
      }),
      begin: unlessOver((call) => this.#begin(call)),
      output: unlessOver((callId, text) => this.#output(callId, text)),
      end: unlessOver((callId, end) => this.#end(callId, end)),
      plan: unlessOver((callId, steps) => {
        items.add<'plan'>({
          type: 'plan',
          callId,
          steps: steps.map((step) => ({ ...step, step: clean(step.step) })),
        });
      }),
      notice: unlessOver((kind, text) => {
        items.add({ type: 'systemNotice', kind, text: clean(text) });
      }),
      // Also of a turn that was interrupted: it was paid for.
      used: (use) => this.#options.onTokensUsed(tokensOf(use)),
      requested: (request) => tracer?.agentRequested(place, delegate.name, request),
      ask: (question, withdrawn) =>
        signal.aborted ? Promise.resolve('cancel') : this.#ask(question, signal, withdrawn),
      elicit: (question, callId, withdrawn) => {
        const call = { callId, name: delegate.name, arguments: '{}' };
        const over = AbortSignal.any([signal, withdrawn]);
        return approvals.elicit(question, call, over, onAsked);
      },
    };
  }

  #begin(call: DelegatedCall): void {
    const { services, place, record } = this.#turn;
    const { items } = record;
    const { callId, tool, command } = call;
    if (this.#open.has(callId)) return;
    this.#volume.checkOpen(this.#open.size + 1);
    const text = services.clean(JSON.stringify(call.arguments)).slice(0, defaults.agent.commandOutputChars);
    this.#volume.addArguments(text);
    items.add({ type: 'toolCall', callId, tool, source: 'agent', arguments: text });
    services.tracer?.toolStarted(place, { callId, tool, arguments: text, source: 'agent' });
    this.#open.set(callId, {
      call,
      command: command === undefined ? undefined : items.beginCommand(callId, services.clean(command)),
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
    open.command.append(this.#turn.services.clean(piece));
  }

  #end(callId: string, { outcome, text, exitCode }: Parameters<DelegatedReport['end']>[1]): void {
    const open = this.#open.get(callId);
    if (!open) return;
    this.#open.delete(callId);
    const { services, place, record } = this.#turn;
    const { tool } = open.call;
    open.command?.end({ outcome, ...(exitCode !== undefined && { exitCode }) });
    const item = record.items.add<'toolResult'>({
      ...{ type: 'toolResult', callId, tool, outcome },
      text: services.clean(text.slice(0, defaults.agent.commandOutputChars)),
      durationMs: Math.round(performance.now() - open.began),
    });
    services.tracer?.toolEnded(place.threadId, item);
    this.#options.onWorked(outcome !== 'cancelled');
  }

  async #ask(question: DelegatedQuestion, signal: AbortSignal, withdrawn?: AbortSignal): Promise<ApprovalDecision> {
    const { approvals, onAsked, onWithdrawn } = this.#options;
    const reviewed = await this.#review(question);
    if (signal.aborted || withdrawn?.aborted || this.#isOver) return 'cancel';
    if (question.isGranted && !isDenied(reviewed)) return 'accept';
    if (reviewed.need) approvals.note(reviewed);
    if (reviewed.refusal !== undefined) return 'decline';
    if (reviewed.decision || !reviewed.need) return reviewed.decision?.word ?? 'accept';
    return new Promise((resolve) => {
      const { requestId } = reviewed;
      approvals.add(reviewed, resolve);
      onAsked(requestId);
      const withdraw = () => {
        if (approvals.withdraw(requestId)) onWithdrawn(requestId);
      };
      withdrawn?.addEventListener('abort', withdraw, { once: true });
    });
  }

  /** A command is judged as a command of our own: by the rules of the user, earlier grants and the policy. */
  async #review({ call, need, isOurs }: DelegatedQuestion): Promise<ReviewedCall> {
    const { services, thread, policy, isPlanning, canAsk } = this.#turn;
    const { rules } = services;
    const { workspacePath, isGranted, config } = thread;
    const isReadOnly = config.readOnly === true;
    const made = { callId: call.callId, name: call.tool, arguments: JSON.stringify(call.arguments) };
    const isCommand = call.command !== undefined && need !== undefined;
    const wanted = isOurs ? call.tool : isCommand ? 'Exec' : undefined;
    const tool = thread.tools().find(({ name, source }) => name === wanted && source === 'builtin');
    if (tool) {
      const args = isOurs ? made.arguments : JSON.stringify({ command: call.command });
      const about = { workspacePath, policy, isGranted, rules, isPlanning, isReadOnly, canAsk };
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
