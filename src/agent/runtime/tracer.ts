import { messageOf } from '../../lib/index.ts';
import {
  defaults,
  type InputPart,
  type Item,
  type ItemOf,
  type NewTraceEvent,
  type ToolSource,
  type TraceType,
  type Turn,
} from '../../protocol/index.ts';
import type { DelegatedRequest } from '../delegate.ts';
import { textOf } from '../history.ts';
import { ModelError } from '../model.ts';
import type { ModelCall, ModelUse } from '../model-call.ts';
import type { StoredThread, StoredTurn, TraceStore } from '../thread-store.ts';
import { timestamp } from './clock.ts';

/** Characters of a user's input in a trace. */
const inputChars = 500;

/** Thread and turn of an event. Without `turnId` it belongs to no turn. */
interface Place {
  readonly threadId: string;
  readonly turnId?: string | undefined;
}

/** Reason for a request to a model. */
interface Asked {
  /** Failed requests that it repeats. */
  readonly retries?: number;
  /** Time since the last of them. */
  readonly pausedMs?: number;
  /** Absent: the turn's own answer. */
  readonly purpose?: 'compaction';
}

interface FailedCall {
  readonly error: unknown;
  readonly retries: number;
  /** Time since the failed request that it repeats. */
  readonly pausedMs: number;
}

/** Decision about an approval. */
interface ApprovalMade {
  readonly decision: string;
  readonly decidedBy: string;
  /** Program through which a user decided. */
  readonly client?: string;
}

/** A call of a tool, as the model made it. */
interface TracedCall {
  readonly callId: string;
  readonly tool: string;
  readonly arguments: string;
  readonly source: ToolSource | undefined;
}

/**
 * Records the activity of a session, segment by segment (specification §2.8): one event for a whole stretch of thinking or of
 * answer, when it has ended. Known tokens and keys are redacted first.
 */
export class Tracer {
  readonly #store: Pick<TraceStore, 'append'>;
  readonly #clean: (text: string) => string;

  /** @param clean redacts secrets */
  constructor(store: Pick<TraceStore, 'append'>, clean: (text: string) => string) {
    this.#store = store;
    this.#clean = clean;
  }

  sessionStarted({ id, createdAt, displayName, identity, parentThreadId }: StoredThread): void {
    const data = { displayName, channelName: identity?.channelName, parentThreadId };
    this.#append('session.started', { threadId: id }, { at: createdAt, data });
  }

  sessionCompleted(threadId: string, reason: 'archived' | 'ended'): void {
    this.#append('session.completed', { threadId }, { data: { reason } });
  }

  /** @param input input of the turn; images and files are recorded as placeholders */
  turnStarted({ threadId, id: turnId, startedAt }: StoredTurn, input: readonly InputPart[]): void {
    const text = this.#text(textOf(input), inputChars);
    this.#append('turn.started', { threadId, turnId }, { at: startedAt, data: text === '' ? {} : { text } });
  }

  /** @param awayMs time without an agent server, in milliseconds */
  turnEnded(turn: StoredTurn, awayMs = 0): void {
    const { threadId, id: turnId, status, error, finishReason, startedAt, completedAt, interruptedBy } = turn;
    const at = completedAt ?? timestamp();
    if (error) this.#failed({ threadId, turnId }, at, error);
    const durationMs = Math.max(0, elapsed(startedAt, at) - awayMs);
    this.#append(
      'turn.completed',
      { threadId, turnId },
      { at, durationMs, data: { status, finishReason, interruptedBy, ...(awayMs > 0 && { awayMs }) } },
    );
  }

  /** A turn of an earlier process continues. */
  turnResumed(place: Place, data: NewTraceEvent['data']): void {
    this.#append('turn.resumed', place, { data });
  }

  /** The next process continues with the turn. */
  turnSuspended(place: Place, reason: string): void {
    this.#append('turn.suspended', place, { data: { reason } });
  }

  /** The process died during the turn. @param at last known activity: the time until this start is not part of the turn */
  turnCrashed(place: Place, startedAt: string, at: string): void {
    this.#failed(place, at, { code: 'crashed', message: 'The agent server ended while this turn ran.' });
    const data = { status: 'failed', interruptedBy: 'crash' };
    this.#append('turn.completed', place, { at, durationMs: elapsed(startedAt, at), data });
  }

  /** One request to a model that was answered. */
  tokensUsed(
    place: Place,
    { durationMs, isEstimated, ...use }: ModelUse,
    { retries = 0, pausedMs = 0, purpose }: Asked,
  ): void {
    const repeats = { ...(retries > 0 && { retries }), ...(pausedMs > 0 && { pausedMs }) };
    const data = { ...use, ...(isEstimated && { isEstimated }), ...repeats, purpose };
    this.#append('tokens.used', place, { durationMs, data });
  }

  /** Records one request of an external agent to its model. */
  agentRequested(place: Place, agent: string, { endedAt, durationMs, model, ...use }: DelegatedRequest): void {
    const name = model === undefined ? undefined : this.#text(model);
    const data = { ...use, provider: agent, model: name, finishReason: 'stop' };
    this.#append('tokens.used', place, { at: new Date(endedAt).toISOString(), durationMs, data });
  }

  /** One request to a model that failed, whether it is repeated or not. */
  modelFailed(place: Place, { durationMs, ...call }: ModelCall, { error, retries, pausedMs }: FailedCall): void {
    const code = error instanceof ModelError ? error.code : 'internalError';
    const data = {
      ...call,
      code,
      text: this.#text(messageOf(error)),
      ...(retries > 0 && { retries }),
      ...(pausedMs > 0 && { pausedMs }),
    };
    this.#append('model.failed', place, { durationMs, data });
  }

  toolStarted(place: Place, { callId, tool, arguments: args, source }: TracedCall): void {
    this.#append('tool.started', place, { callId, tool, data: { arguments: this.#text(args), source } });
  }

  /** The duration of a call that a client ran is unknown. */
  toolEnded(threadId: string, item: ItemOf<'toolResult'>): void {
    const { turnId, id: itemId, callId, tool, outcome, text, durationMs } = item;
    this.#append(
      outcome === 'completed' ? 'tool.completed' : 'tool.failed',
      { threadId, turnId },
      {
        itemId,
        callId,
        tool,
        ...(durationMs !== undefined && { durationMs }),
        data: { outcome, result: this.#text(text) },
      },
    );
  }

  approvalRequested(place: Place, callId: string, data: Readonly<Record<string, string>>): void {
    const clean = Object.entries(data).map(([key, value]) => [key, this.#text(value)]);
    this.#append('approval.requested', place, { callId, data: Object.fromEntries(clean) });
  }

  /** @param waitedMs since it was requested */
  approvalCompleted(place: Place, callId: string, waitedMs: number, made: ApprovalMade): void {
    const { client } = made;
    this.#append('approval.completed', place, {
      callId,
      durationMs: Math.round(waitedMs),
      data: { ...made, ...(client !== undefined && { client: this.#text(client) }) },
    });
  }

  contextCompacted(place: Place, durationMs: number, tokensBefore: number, tokensAfter: number): void {
    const data = { tokensBefore, tokensAfter };
    this.#append('context.compacted', place, { durationMs: Math.round(durationMs), data });
  }

  /** @param leftBehind answers whose opaque state the new model cannot read */
  modelReplaced(place: Place, model: string, leftBehind: number): void {
    this.#append('model.replaced', place, { data: { model, ...(leftBehind > 0 && { leftBehind }) } });
  }

  /** Records a whole stretch of thinking or of an answer; other items are recorded by their sources. */
  segment(threadId: string, item: Item, durationMs: number): void {
    if (item.type !== 'reasoningContent' && item.type !== 'agentMessage') return;
    const { id: itemId, turnId } = item;
    this.#append(
      item.type === 'agentMessage' ? 'response' : 'thinking',
      { threadId, turnId },
      { itemId, durationMs: Math.round(durationMs), data: { text: this.#text(item.text) } },
    );
  }

  #failed(place: Place, at: string, { code, message }: NonNullable<Turn['error']>): void {
    this.#append('error', place, { at, data: { code, text: this.#text(message) } });
  }

  #append(
    type: TraceType,
    { threadId, turnId }: Place,
    event: Omit<NewTraceEvent, 'type' | 'sessionKey' | 'turnId' | 'at'> & { at?: string },
  ): void {
    this.#store.append({
      at: timestamp(),
      ...(turnId !== undefined && { turnId }),
      ...event,
      data: known(event.data),
      type,
      sessionKey: threadId,
    });
  }

  #text(text: string, limit: number = defaults.agent.traceTextChars): string {
    // Before the text is cut: half a secret would not be recognised.
    const clean = this.#clean(text);
    return clean.length > limit ? `${clean.slice(0, limit)}… (${clean.length} characters)` : clean;
  }
}

/** Removes undefined fields: the disk does not store them, and listeners get the same as readers. */
function known(data: NewTraceEvent['data']): NewTraceEvent['data'] {
  const kept: Record<string, unknown> = {};
  for (const name in data) if (data[name] !== undefined) kept[name] = data[name];
  return kept;
}

/** Milliseconds between two times; 0 when the clock was set back. */
const elapsed = (from: string, to: string): number => Math.max(0, Date.parse(to) - Date.parse(from));
