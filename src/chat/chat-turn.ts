import { randomUUID } from 'node:crypto';
import { discardingNotices, type ThreadEvent } from '../agent/index.ts';
import type { HttpError } from '../http/index.ts';
import type { ApprovalRequest, Item, Turn } from '../protocol/index.ts';
import {
  type Activity,
  approvalRequested,
  approvalResolved,
  lineOf,
  notice,
  planned,
  toolEnded,
  toolStarted,
} from './activity.ts';
import { type ClientCall, ClientCalls } from './client-calls.ts';
import { chatError, outcomeUnknown, turnFailure, withoutRetry } from './errors.ts';
import type { ResponseHead, ResponseLog } from './responses/log.ts';
import type { Outcome, Watcher } from './watcher.ts';

/** Fields of the request that shape its answer. Stored as JSON for the next process. */
export interface AnswerShape {
  /** Identity of the answer; default: a new one. */
  readonly identity?: Pick<ChatTurn, 'id' | 'created'>;
  readonly model: string;
  readonly sessionId?: string | undefined;
  readonly showsActivity: boolean;
  readonly onlyFinalText: boolean;
  /** Names of the tools that the caller runs. */
  readonly callerTools: readonly string[];
  /** Undefined: the answer is a chat completion. */
  readonly response?: ResponseHead | undefined;
}

export interface ChatTurnOptions extends Omit<AnswerShape, 'response'> {
  /** Undefined: the answer is a chat completion. */
  readonly response?: ResponseLog | undefined;
  /** Without watchers, and not ended. */
  readonly onDeserted: (turn: ChatTurn) => void;
}

/** Saves a turn, so that its request can be repeated. */
export interface TurnSaver {
  /** Called in the transaction that stores the turn's row. */
  start(threadId: string, turnId: string): void;
  /** Called with the outcome set, before a watcher gets it. */
  end(): void;
}

/**
 * One turn of this API: converts its events into the parts of an answer, stores the text so far, and notifies the
 * watchers. A retry of the same request watches the same turn.
 */
export class ChatTurn {
  readonly id: string;
  readonly created: number;
  readonly model: string;
  readonly sessionId: string | undefined;
  readonly response: ResponseLog | undefined;
  /** A caller that lost the connection can find the turn again. */
  isResumable: boolean;
  text = '';
  reasoning = '';
  activities: Activity[] = [];
  /** Approvals that it waits for, by id; those of its sub-agents too. */
  readonly approvals = new Map<string, ApprovalRequest>();
  /** A tool of the server may have changed something: the turn must not be run a second time. */
  hasRunTools = false;
  outcome: Outcome | undefined;
  readonly ended: Promise<void>;
  readonly #options: ChatTurnOptions;
  readonly #watchers = new Set<Watcher>();
  readonly #calls: ClientCalls;
  #resolveEnded: () => void = () => {};
  #stop: (() => void) | undefined;
  readonly #savers: TurnSaver[] = [];
  #isStopped = false;
  #messageId = '';
  /** Characters of the open message that came as deltas. */
  #seen = 0;
  #reasoningId = '';
  /** Length of the text of whole answers: later text may be discarded. */
  #sure = 0;

  constructor(options: ChatTurnOptions) {
    const { id = `chatcmpl-${randomUUID().replaceAll('-', '')}`, created = Math.floor(Date.now() / 1000) } =
      options.identity ?? {};
    this.#options = options;
    this.id = id;
    this.created = created;
    this.model = options.model;
    this.sessionId = options.sessionId;
    this.response = options.response;
    this.isResumable = options.sessionId !== undefined;
    this.#calls = new ClientCalls(new Set(options.callerTools), (piece) => {
      this.response?.call(piece);
      for (const watcher of this.#watchers) watcher.onCall(piece);
    });
    this.ended = new Promise((resolve) => {
      this.#resolveEnded = resolve;
    });
  }

  /** Calls that the caller is to run; the last ones may not be whole before the end. */
  get calls(): readonly ClientCall[] {
    return this.#calls.all;
  }

  get #callIds(): ReadonlySet<string> {
    return new Set(this.calls.map(({ id }) => id));
  }

  /** Something of an answer is there. */
  get hasSpoken(): boolean {
    return this.text !== '' || this.reasoning !== '' || this.calls.length + this.activities.length > 0;
  }

  /** Ends it early. Asked twice, it ends once. */
  stop(): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#stop?.();
  }

  /** Sets how to end it from now on, which depends on its progress. @throws HttpError when it must end already */
  stopBy(stop: () => void): void {
    if (this.#isStopped) throw givenUp();
    this.#stop = stop;
  }

  /** Shape of the answer, from which the next process makes this turn again. */
  get shape(): AnswerShape {
    const { id, created } = this;
    const { model, sessionId, showsActivity, onlyFinalText, callerTools } = this.#options;
    const response = this.response?.state.head;
    return { identity: { id, created }, model, sessionId, showsActivity, onlyFinalText, callerTools, response };
  }

  saveBy(saver: TurnSaver): void {
    this.#savers.push(saver);
  }

  /** Called while the runtime stores its turn. */
  saveStart(threadId: string, turnId: string): void {
    for (const saver of this.#savers) saver.start(threadId, turnId);
  }

  /** Becomes a turn that has ended. */
  restore(
    parts: Pick<ChatTurn, 'text' | 'reasoning' | 'activities' | 'calls' | 'hasRunTools'>,
    outcome: Outcome,
  ): void {
    const { text, reasoning, activities, calls, hasRunTools } = parts;
    Object.assign(this, { text, reasoning, activities, hasRunTools });
    for (const { id, name, arguments: given } of calls) {
      this.#calls.complete({ callId: id, tool: name, source: 'client', arguments: given });
    }
    this.#end(outcome);
  }

  /** Takes over a turn of the runtime that runs, or has ended, with everything it has written. */
  join(turn: Turn): void {
    for (const item of turn.items) {
      if (item.type !== 'reasoningContent') this.#completed(item);
      else {
        this.#beginReasoning(item.id);
        this.#think(item.text);
      }
    }
    if (turn.completedAt === undefined) return;
    const { status, error } = turn;
    if (status === 'cancelled') this.#failed(turn, cancellation(turn));
    else if (error) this.#failed(turn, turnFailure(error));
    else this.#end({ finish: turn.finishReason ?? 'stop', usage: turn.tokenUsage, error: undefined });
  }

  get isWatched(): boolean {
    return this.#watchers.size > 0;
  }

  /** Text that may be sent now: where only the last message counts, nothing before the end. */
  get textSoFar(): string {
    return this.#options.onlyFinalText && !this.outcome ? '' : this.text;
  }

  watch(watcher: Watcher): void {
    this.#watchers.add(watcher);
  }

  unwatch(watcher: Watcher): void {
    if (this.#watchers.delete(watcher) && !this.isWatched && !this.outcome) this.#options.onDeserted(this);
  }

  /** Handles a notification of the runtime. This is the hot path: one call per piece of an answer. */
  readonly listener = (event: ThreadEvent): void => {
    switch (event.method) {
      case 'item/agentMessage/delta':
        if (event.params.itemId !== this.#messageId) this.#beginMessage(event.params.itemId);
        this.#seen += event.params.delta.length;
        this.#say(event.params.delta);
        return;
      case 'item/reasoning/delta':
        if (event.params.itemId !== this.#reasoningId) this.#beginReasoning(event.params.itemId);
        this.#think(event.params.delta);
        return;
      case 'item/toolCall/argumentsDelta':
        this.#calls.write(event.params);
        return;
      case 'item/completed':
        this.#completed(event.params.item);
        return;
      case 'item/approval/request':
        this.approvals.set(event.params.requestId, event.params);
        this.#act(approvalRequested(event.params));
        return;
      case 'item/approval/resolved': {
        const { requestId, decision, decidedBy } = event.params;
        this.approvals.delete(requestId);
        this.#act(approvalResolved(requestId, decision, decidedBy));
        return;
      }
      case 'turn/completed': {
        const { turn, tokenUsage } = event.params;
        this.#end({ finish: turn.finishReason ?? 'stop', usage: tokenUsage, error: undefined });
        return;
      }
      case 'turn/failed':
        this.#failed(event.params.turn, turnFailure(event.params.error));
        return;
      case 'turn/cancelled':
        this.#failed(event.params.turn, cancellation(event.params.turn));
        return;
    }
  };

  /** Ends a turn that could not be begun. */
  fail(error: HttpError): void {
    this.#end({ finish: 'stop', usage: undefined, error });
  }

  #completed(item: Item): void {
    switch (item.type) {
      case 'agentMessage':
        // Without deltas, or with fewer than there should have been, the rest comes here.
        if (item.id !== this.#messageId) this.#beginMessage(item.id);
        if (item.text.length > this.#seen) this.#say(item.text.slice(this.#seen));
        this.#seen = item.text.length;
        return;
      case 'toolCall':
        // Calls become items when their answer is whole.
        this.#sure = this.text.length;
        this.#calls.complete(item);
        if (item.source !== 'client') {
          this.hasRunTools = true;
          this.#act(toolStarted(item));
        }
        return;
      case 'toolResult':
        // Results that the caller brought are known to it.
        if (this.activities.some(({ callId }) => callId === item.callId)) this.#act(toolEnded(item));
        return;
      case 'userMessage':
        this.#sure = this.text.length;
        return;
      case 'plan':
        this.#act(planned(item));
        return;
      case 'systemNotice':
        if (discardingNotices.has(item.kind)) this.#discard();
        this.#act(notice(item));
        return;
    }
  }

  /** The answer broke off, and the whole request is repeated. A stream keeps the words it has sent, and gets a new paragraph. */
  #discard(): void {
    const watchers = [...this.#watchers];
    if (this.text.length > this.#sure && !this.#options.onlyFinalText) {
      for (const watcher of watchers) watcher.onText('\n\n');
    }
    this.text = this.text.slice(0, this.#sure);
    this.#messageId = '';
    const hasBroken = this.#calls.discard();
    this.response?.discard(this.#callIds);
    // A client joins pieces of calls by their index: half a call cannot be taken back.
    if (!hasBroken || !watchers.some(({ isStream }) => isStream)) return;
    this.stop();
    this.fail(chatError('upstreamFailed', 'The model provider broke off in a call that was sent already.'));
  }

  /** Messages before and after tool calls are paragraphs of one answer; where only the last counts the others are thoughts. */
  #beginMessage(itemId: string): void {
    this.#messageId = itemId;
    this.#seen = 0;
    this.response?.beginMessage();
    if (this.text === '') return;
    if (!this.#options.onlyFinalText) {
      this.#say('\n\n');
      return;
    }
    const { text } = this;
    this.text = '';
    this.#think(`${text}\n`);
  }

  #beginReasoning(itemId: string): void {
    this.#reasoningId = itemId;
    if (this.reasoning !== '' && !this.reasoning.endsWith('\n')) this.#think('\n');
  }

  #say(text: string): void {
    this.text += text;
    if (this.#options.onlyFinalText) return;
    this.response?.text(text);
    for (const watcher of this.#watchers) watcher.onText(text);
  }

  #think(text: string): void {
    this.reasoning += text;
    this.response?.reasoning(text);
    for (const watcher of this.#watchers) watcher.onReasoning(text);
  }

  #act(activity: Activity): void {
    this.activities.push(activity);
    const line = this.#options.showsActivity ? this.#asThought(lineOf(activity)) : '';
    this.reasoning += line;
    this.response?.activity(activity, line);
    for (const watcher of this.#watchers) watcher.onActivity(activity, line);
  }

  #asThought(line = ''): string {
    return line !== '' && this.reasoning !== '' && !this.reasoning.endsWith('\n') ? `\n${line}` : line;
  }

  #failed(turn: Turn, error: HttpError): void {
    const isFinal = this.hasRunTools && !error.headers.some(([name]) => name === 'x-should-retry');
    this.#end({ finish: 'stop', usage: turn.tokenUsage, error: isFinal ? withoutRetry(error) : error });
  }

  #end(outcome: Outcome): void {
    if (this.outcome) return;
    this.outcome = outcome;
    this.#calls.end();
    const lateText = this.#options.onlyFinalText ? this.text : '';
    this.response?.text(lateText);
    this.response?.end(outcome, this.#callIds);
    for (const saver of this.#savers) saver.end();
    if (lateText !== '') for (const watcher of this.#watchers) watcher.onText(lateText);
    for (const watcher of this.#watchers) watcher.onEnd(outcome);
    this.#watchers.clear();
    this.#resolveEnded();
  }
}

/** The request ended before there was a turn of the runtime. */
export const givenUp = (): HttpError => chatError('turnInterrupted', 'The turn was given up before it began.');

function cancellation({ interruptedBy }: Turn): HttpError {
  if (interruptedBy === 'crash') return outcomeUnknown();
  if (interruptedBy === 'shutdown') return chatError('shuttingDown', 'The server is shutting down.');
  return chatError('turnInterrupted', 'The turn was interrupted before it had an answer.');
}
