import { hash } from 'node:crypto';
import { type ChatRequestStore, StorageError, type StoredChatRequest } from '../agent/index.ts';
import type { Logger } from '../log/index.ts';
import { defaults } from '../protocol/index.ts';
import { type AnswerRecord, answeredTurn, answerRecordOf } from './answer-record.ts';
import type { AnswerShape, ChatTurn } from './chat-turn.ts';
import { chatError, chatErrors, outcomeUnknown } from './errors.ts';
import type { ChatTiming } from './options.ts';
import type { ChatTurns } from './turns.ts';

/** Fields of a request by which its repetition is recognised. */
export interface Repetition {
  /** Identifies the client and its request; undefined: the request cannot be repeated. */
  readonly name: string | undefined;
  /** Has an `Idempotency-Key`. */
  readonly hasKey: boolean;
  /** The client counts its tries. */
  readonly hasCount: boolean;
  /** The client says that it has tried before. */
  readonly isRetry: boolean;
  readonly fingerprint: string;
}

const keyPattern = /^[\x20-\x7e]+$/;

/**
 * Reads headers of a request; its body is hashed only where a caller may repeat it. The name holds the bearer key and the
 * `User-Agent`: another client that sends the same body gets an answer of its own. It is a hash, because it is stored.
 */
export function repetitionOf(
  header: (name: string) => string | undefined,
  body: Uint8Array,
  sessionId: string | undefined,
): Repetition {
  const key = header('idempotency-key');
  const tries = header('x-stainless-retry-count');
  if (key !== undefined && (!keyPattern.test(key) || key.length > defaults.chat.idempotencyKeyChars)) {
    throw chatError(
      'invalidParameter',
      `Idempotency-Key must be 1 to ${defaults.chat.idempotencyKeyChars} printable ASCII characters.`,
      { param: 'Idempotency-Key' },
    );
  }
  const hasKey = key !== undefined;
  const hasCount = tries !== undefined;
  const isRetry = Number(tries ?? 0) > 0;
  if (!hasKey && !hasCount && sessionId === undefined) {
    return { name: undefined, hasKey, hasCount, isRetry, fingerprint: '' };
  }
  const fingerprint = `${hash('sha256', body)} ${sessionId ?? ''}`;
  const client = [header('authorization') ?? '', header('user-agent') ?? ''];
  const name = hash('sha256', JSON.stringify([...client, hasKey ? { key } : { fingerprint }]));
  return { name, hasKey, hasCount, isRetry, fingerprint };
}

export interface ReplaysOptions {
  readonly requests: ChatRequestStore;
  readonly turns: Pick<ChatTurns, 'resume'>;
  readonly timing: ChatTiming;
  readonly logger: Logger;
}

interface RunningRequest {
  readonly turn: ChatTurn;
  readonly fingerprint: string;
  /** An earlier process began the turn. */
  readonly isResumed: boolean;
}

/**
 * Turns that a client may ask for again: the same `Idempotency-Key`, or the same body from a library that counts its tries. The same
 * request of a session, without either, gets a turn only when the agent server ended in it, and an answer of this turn once. A turn
 * is run a second time only when it is known to have failed before any tool ran. Requests are stored with the row of their turn, and
 * answers before a client gets their end, so a kill of the server changes nothing of this.
 */
export class Replays {
  readonly #options: ReplaysOptions;
  /** Turns of this process that have not ended, by name of their request. */
  readonly #running = new Map<string, RunningRequest>();

  constructor(options: ReplaysOptions) {
    this.#options = options;
    for (const request of options.requests.unfinished()) this.#recover(request);
  }

  /** Takes over a request to an earlier process, whose turn continues, has ended, or is lost. */
  #recover({ name, fingerprint, threadId, turnId, origin }: StoredChatRequest): void {
    const { requests, turns } = this.#options;
    const onMade = (turn: ChatTurn) => {
      const entry = { turn, fingerprint, isResumed: true };
      this.#running.set(name, entry);
      turn.saveBy({ start: () => {}, end: () => this.#end(name, entry, true) });
    };
    const isFound = origin !== undefined && turns.resume(threadId, turnId, JSON.parse(origin) as AnswerShape, onMade);
    if (!isFound) requests.end(name, undefined, Date.now());
  }

  /**
   * The turn that answers this repetition. @throws HttpError 422 when the key came with another body, or when the agent server
   * ended during the turn
   */
  find({ name, hasKey, isRetry, fingerprint }: Repetition): ChatTurn | undefined {
    if (name === undefined) return undefined;
    const running = this.#running.get(name);
    if (!(hasKey || isRetry)) return running ? (running.isResumed ? running.turn : undefined) : this.#claim(name);
    if (!running) this.#trim();
    const known = running ?? this.#options.requests.find(name);
    if (!known) return undefined;
    if (known.fingerprint !== fingerprint) {
      throw chatError('idempotencyKeyReused', 'This Idempotency-Key was used for another request.', {
        param: 'Idempotency-Key',
      });
    }
    if ('turn' in known) return known.turn;
    if (known.answer === undefined) throw outcomeUnknown();
    return answeredTurn(known.answer as AnswerRecord);
  }

  /** The answer of a turn that continued, which no client has got. */
  #claim(name: string): ChatTurn | undefined {
    const { requests } = this.#options;
    const record = requests.find(name)?.answer as AnswerRecord | undefined;
    if (!record?.isUnclaimed) return undefined;
    requests.end(name, JSON.stringify({ ...record, isUnclaimed: undefined }), Date.now());
    return answeredTurn(record);
  }

  /** Stores the turn of a request, when it begins, and its answer. */
  add({ name, fingerprint, hasKey, hasCount }: Repetition, turn: ChatTurn): void {
    if (name === undefined) return;
    const { requests } = this.#options;
    let hasBegun = false;
    const entry = { turn, fingerprint, isResumed: false };
    this.#running.set(name, entry);
    turn.saveBy({
      start: (threadId, turnId) => {
        requests.begin({ name, fingerprint, threadId, turnId, origin: JSON.stringify(turn.shape) });
        hasBegun = true;
      },
      end: () => {
        if (hasBegun) this.#end(name, entry, hasKey || hasCount);
        else if (this.#running.get(name) === entry) this.#running.delete(name);
      },
    });
  }

  /** @param mayReturn the client can ask for the answer again */
  #end(name: string, entry: RunningRequest, mayReturn: boolean): void {
    // Another turn of the same request has begun.
    if (this.#running.get(name) !== entry) return;
    this.#running.delete(name);
    const { requests, logger } = this.#options;
    try {
      if (!mayReturn || isWorthAnother(entry.turn)) requests.delete(name);
      else requests.end(name, answerOf(entry), Date.now());
      this.#trim();
    } catch (error) {
      if (!(error instanceof StorageError)) throw error;
      logger.warn('could not save the answer of a chat request; a repetition of it is refused', { error });
    }
  }

  /** Deletes old answers, and the oldest when there are too many. */
  #trim(): void {
    const { requests, timing } = this.#options;
    requests.trim({
      endedAfter: Date.now() - timing.idempotencyMs,
      entries: timing.idempotencyEntries,
      chars: defaults.chat.replayChars,
    });
  }
}

/** Answer of an ended turn as JSON; undefined: its end is unknown. */
function answerOf({ turn, isResumed }: RunningRequest): string | undefined {
  if (endsOfServer.has(turn.outcome?.error?.code ?? '')) return undefined;
  return JSON.stringify({ ...answerRecordOf(turn), ...(isResumed && !turn.isWatched && { isUnclaimed: true }) });
}

const isWorthAnother = ({ outcome, hasRunTools }: ChatTurn): boolean => outcome?.error !== undefined && !hasRunTools;

const endsOfServer: ReadonlySet<string> = new Set([chatErrors.shuttingDown.code, chatErrors.outcomeUnknown.code]);
