import { hash } from 'node:crypto';
import { type ChatRequestStore, StorageError } from '../agent/index.ts';
import type { Logger } from '../log/index.ts';
import { defaults } from '../protocol/index.ts';
import { type AnswerRecord, answeredTurn, answerRecordOf } from './answer-record.ts';
import type { ChatTurn } from './chat-turn.ts';
import { chatError, chatErrors } from './errors.ts';
import type { ChatTiming } from './options.ts';

/** Fields of a request by which its repetition is recognised. */
export interface Repetition {
  /** Identifies the client and its request; undefined: the request cannot be repeated. */
  readonly name: string | undefined;
  /** Has an `Idempotency-Key`. */
  readonly hasKey: boolean;
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
  if (!hasKey && tries === undefined) return { name: undefined, hasKey, isRetry: false, fingerprint: '' };
  const fingerprint = `${hash('sha256', body)} ${sessionId ?? ''}`;
  const client = [header('authorization') ?? '', header('user-agent') ?? ''];
  const name = hash('sha256', JSON.stringify([...client, hasKey ? { key } : { fingerprint }]));
  return { name, hasKey, isRetry: Number(tries ?? 0) > 0, fingerprint };
}

export interface ReplaysOptions {
  readonly requests: ChatRequestStore;
  readonly timing: ChatTiming;
  readonly logger: Logger;
}

/**
 * Turns that a client may ask for again: the same `Idempotency-Key`, or the same body from a library that counts its tries.
 * A turn is run a second time only when it is known to have failed before any tool ran. Requests are stored with the row of
 * their turn, and answers before a client gets their end, so a kill of the server changes nothing of this.
 */
export class Replays {
  readonly #options: ReplaysOptions;
  /** Turns of this process that have not ended, by name of their request. */
  readonly #running = new Map<string, { readonly turn: ChatTurn; readonly fingerprint: string }>();

  constructor(options: ReplaysOptions) {
    this.#options = options;
    options.requests.endUnfinished(Date.now());
  }

  /**
   * The turn that answers this repetition. @throws HttpError 422 when the key came with another body, or when the agent server
   * ended during the turn
   */
  find({ name, hasKey, isRetry, fingerprint }: Repetition): ChatTurn | undefined {
    if (name === undefined || !(hasKey || isRetry)) return undefined;
    const running = this.#running.get(name);
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

  /** Stores the turn of a request, when it begins, and its answer. */
  add({ name, fingerprint }: Repetition, turn: ChatTurn): void {
    if (name === undefined) return;
    const { requests } = this.#options;
    let hasBegun = false;
    const entry = { turn, fingerprint };
    this.#running.set(name, entry);
    turn.saveBy({
      start: (threadId, turnId) => {
        requests.begin({ name, fingerprint, threadId, turnId });
        hasBegun = true;
      },
      end: () => {
        // Another turn of the same request has begun.
        if (this.#running.get(name) !== entry) return;
        this.#running.delete(name);
        if (hasBegun) this.#save(name, turn);
      },
    });
  }

  #save(name: string, turn: ChatTurn): void {
    const { requests, logger } = this.#options;
    try {
      if (isWorthAnother(turn)) requests.delete(name);
      else requests.end(name, wasCutOff(turn) ? undefined : JSON.stringify(answerRecordOf(turn)), Date.now());
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

const outcomeUnknown = () =>
  chatError(
    'outcomeUnknown',
    'The agent server ended while this turn ran. Its tools may have taken effect, so the turn is not run again: check the workspace, then send the request with another Idempotency-Key.',
  );

const isWorthAnother = ({ outcome, hasRunTools }: ChatTurn): boolean => outcome?.error !== undefined && !hasRunTools;

const wasCutOff = ({ outcome }: ChatTurn): boolean => outcome?.error?.code === chatErrors.shuttingDown.code;
