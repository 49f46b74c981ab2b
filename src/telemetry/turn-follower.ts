import { defaults, type TraceEvent } from '../protocol/index.ts';

/** A turn, as far as its trace has been heard: one object for all that is heard of it. Times are milliseconds since the Unix epoch. */
export interface OpenTurn {
  readonly sessionKey: string;
  readonly turnId: string;
  readonly startedAt: number;
}

/** One request to the model. */
export interface ModelCall {
  readonly startedAt: number;
  readonly endedAt: number;
  /** Time of the first piece of thinking or answer; absent without one. */
  readonly firstAt: number | undefined;
  /** Absent when the provider had not counted before it ended. */
  readonly tokens: CountedTokens | undefined;
  /** Cost in US dollars; absent when it is unknown. */
  readonly costUsd: number | undefined;
  /** Names in the request; absent when the trace lacks them. */
  readonly provider: string | undefined;
  readonly model: string | undefined;
  /** Id that the provider gave the request. */
  readonly requestId: string | undefined;
  /** Failed requests that it repeats. */
  readonly retries: number;
  readonly outcome: 'completed' | 'failed' | 'cancelled';
  /** Code of the error that it failed of. */
  readonly errorCode: string | undefined;
  readonly finishReason: string | undefined;
  /** The turn made a summary of older turns. */
  readonly isCompaction: boolean;
  readonly segments: readonly Segment[];
}

/** Tokens of one request; `input` includes `cached` and `cacheWrite`, `output` includes `reasoning`. */
interface CountedTokens {
  readonly input: number;
  readonly output: number;
  readonly cached: number;
  readonly cacheWrite: number;
  readonly reasoning: number;
}

/** A stretch of thinking or of answer. */
interface Segment {
  readonly type: 'thinking' | 'response';
  readonly text: string;
  readonly startedAt: number;
}

/** Receives the events of turns, in order. */
export interface TurnListener {
  /** Every event. `turn` is absent when it is of none, or of one whose beginning was not heard. */
  onEvent(event: TraceEvent, turn: OpenTurn | undefined): void;
  onModelCall(call: ModelCall, turn: OpenTurn): void;
  /** After everything else of this turn. */
  onTurnEnd(event: TraceEvent, turn: OpenTurn | undefined): void;
  /** The end of the turn will not arrive: the process ends, another turn has begun in its session, or there are too many. */
  onTurnLost(turn: OpenTurn): void;
}

interface Followed extends OpenTurn {
  /** Output of the model in the current request. */
  segments: Segment[];
  /** When something was last heard that the model did not say: it cannot have been asked before. */
  quietSince: number;
  /** Kind of the last error. */
  errorCode: string | undefined;
  /** The last request has failed, and was reported. */
  hasReportedFailure: boolean;
}

/** Turns whose beginning was heard and whose end was not. More than this are not followed. */
const maxTurns = defaults.telemetry.queueSpans;

/** Follows turns by their traces and assembles the requests to the model, which a trace reports piece by piece. */
export class TurnFollower {
  readonly #turns = new Map<string, Followed>();
  /** By id, oldest first: an external agent exports some requests after the end. */
  readonly #ended = new Map<string, Followed>();
  readonly #listeners: readonly TurnListener[];

  constructor(listeners: readonly TurnListener[]) {
    this.#listeners = listeners;
  }

  take(event: TraceEvent): void {
    if (event.type === 'turn.started') this.#begin(event);
    const turn = this.#turnOf(event);
    for (const listener of this.#listeners) listener.onEvent(event, turn);
    if (turn) this.#follow(turn, event);
    else if (event.type === 'tokens.used') this.#addLate(event);
    if (event.type === 'turn.completed') this.#end(turn, event);
  }

  /** Everything that has begun and not ended is lost. */
  close(): void {
    for (const turn of [...this.#turns.values()]) this.#lose(turn);
  }

  #begin({ sessionKey, turnId = '', at }: TraceEvent): void {
    const former = this.#turns.get(sessionKey);
    if (former) this.#lose(former);
    const [oldest] = this.#turns.values();
    if (oldest && this.#turns.size >= maxTurns) this.#lose(oldest);
    const startedAt = Date.parse(at);
    const turn = {
      sessionKey,
      turnId,
      startedAt,
      segments: [],
      quietSince: startedAt,
      errorCode: undefined,
      hasReportedFailure: false,
    };
    this.#turns.set(sessionKey, turn);
  }

  #turnOf({ sessionKey, turnId }: TraceEvent): Followed | undefined {
    const turn = this.#turns.get(sessionKey);
    return turn?.turnId === turnId ? turn : undefined;
  }

  #follow(turn: Followed, event: TraceEvent): void {
    const { type, at, durationMs = 0, data } = event;
    const endedAt = Date.parse(at);
    if (type === 'thinking' || type === 'response') {
      turn.segments.push({ type, text: textOf(data['text']) ?? '', startedAt: endedAt - durationMs });
      return;
    }
    if (type === 'tokens.used') this.#report(turn, countedCall(turn, event));
    if (type === 'model.failed') this.#report(turn, failedCall(turn, event));
    if (type === 'error') turn.errorCode = textOf(data['code']);
    else if (type !== 'turn.completed') {
      turn.quietSince = endedAt;
      turn.hasReportedFailure = type === 'model.failed';
    }
  }

  #report(turn: Followed, call: ModelCall): void {
    if (!call.isCompaction) turn.segments = [];
    for (const listener of this.#listeners) listener.onModelCall(call, turn);
  }

  #end(turn: Followed | undefined, event: TraceEvent): void {
    const unanswered = turn && unansweredCall(turn, event);
    if (turn && unanswered) this.#report(turn, unanswered);
    for (const listener of this.#listeners) listener.onTurnEnd(event, turn);
    if (!turn) return;
    this.#turns.delete(turn.sessionKey);
    const [oldest] = this.#ended.keys();
    if (this.#ended.size >= defaults.telemetry.endedTurns && oldest !== undefined) this.#ended.delete(oldest);
    turn.segments = [];
    this.#ended.set(turn.turnId, turn);
  }

  #addLate(event: TraceEvent): void {
    const turn = this.#ended.get(event.turnId ?? '');
    if (turn?.sessionKey === event.sessionKey) this.#report(turn, countedCall(turn, event));
  }

  #lose(turn: Followed): void {
    this.#turns.delete(turn.sessionKey);
    for (const listener of this.#listeners) listener.onTurnLost(turn);
  }
}

/** A request whose tokens were counted: it is reported once it has ended. */
function countedCall(turn: Followed, { at, durationMs = 0, data }: TraceEvent): ModelCall {
  const isCompaction = data['purpose'] === 'compaction';
  const segments = isCompaction ? [] : turn.segments;
  const finishReason = textOf(data['finishReason']);
  const { costUsd } = data;
  return {
    ...requestOf(segments, { at, durationMs, data }),
    tokens: {
      input: tokensOf(data['inputTokens']),
      output: tokensOf(data['outputTokens']),
      cached: tokensOf(data['cachedInputTokens']),
      cacheWrite: tokensOf(data['cacheWriteTokens']),
      reasoning: tokensOf(data['reasoningTokens']),
    },
    costUsd: typeof costUsd === 'number' && Number.isFinite(costUsd) ? Math.max(0, costUsd) : undefined,
    // An answer that was cut off gives no reason for its end.
    outcome: finishReason === undefined ? 'cancelled' : 'completed',
    errorCode: undefined,
    finishReason,
    isCompaction,
    segments,
  };
}

/** A request that failed before anything was counted. */
function failedCall({ segments }: Followed, { at, durationMs = 0, data }: TraceEvent): ModelCall {
  return {
    ...requestOf(segments, { at, durationMs, data }),
    tokens: undefined,
    costUsd: undefined,
    outcome: 'failed',
    errorCode: textOf(data['code']),
    finishReason: undefined,
    isCompaction: false,
    segments,
  };
}

/** Facts of a request that do not depend on its outcome. */
function requestOf(
  segments: readonly Segment[],
  { at, durationMs, data }: Pick<TraceEvent, 'at' | 'data'> & { readonly durationMs: number },
): Pick<ModelCall, 'startedAt' | 'endedAt' | 'firstAt' | 'provider' | 'model' | 'requestId' | 'retries'> {
  const endedAt = Date.parse(at);
  const startedAt = endedAt - durationMs;
  const { firstTokenMs } = data;
  return {
    startedAt,
    endedAt,
    firstAt: Number.isSafeInteger(firstTokenMs) ? startedAt + tokensOf(firstTokenMs) : firstOf(segments, startedAt),
    provider: textOf(data['provider']),
    model: textOf(data['model']),
    requestId: textOf(data['requestId']),
    retries: tokensOf(data['retries']),
  };
}

/** A request that ended with its turn before anything was counted; undefined without one. */
function unansweredCall(turn: Followed, { at, data }: TraceEvent): ModelCall | undefined {
  const { segments, quietSince: startedAt, errorCode, hasReportedFailure } = turn;
  if (hasReportedFailure) return undefined;
  const hasFailed = data['status'] === 'failed' && errorCode !== undefined && isModelError(errorCode);
  if (!hasFailed && segments.length === 0) return undefined;
  return {
    startedAt,
    endedAt: Math.max(startedAt, Date.parse(at)),
    firstAt: firstOf(segments, startedAt),
    tokens: undefined,
    costUsd: undefined,
    provider: undefined,
    model: undefined,
    requestId: undefined,
    retries: 0,
    outcome: hasFailed ? 'failed' : data['status'] === 'completed' ? 'completed' : 'cancelled',
    errorCode: hasFailed ? errorCode : undefined,
    finishReason: undefined,
    isCompaction: false,
    segments,
  };
}

/** Rounding must not make it come before the request. */
const firstOf = ([first]: readonly Segment[], startedAt: number): number | undefined =>
  first && Math.max(first.startedAt, startedAt);

/** `ModelErrorCode` of the agent: reasons of turns that fail with their provider. */
const isModelError = (code: string): boolean => code.startsWith('upstream') || code === 'contextTooLong';

export const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

/** A provider's number of tokens may be invalid. */
export const tokensOf = (value: unknown): number => (Number.isSafeInteger(value) ? Math.max(0, Number(value)) : 0);
