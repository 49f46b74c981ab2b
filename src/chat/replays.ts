import { hash } from 'node:crypto';
import { defaults } from '../protocol/index.ts';
import type { ChatTurn } from './chat-turn.ts';
import { chatError } from './errors.ts';
import type { ChatTiming } from './options.ts';

/** Fields of a request by which its repetition is recognised. */
export interface Repetition {
  /** `Idempotency-Key`; undefined: it has none. */
  readonly key: string | undefined;
  /** The client library counts its tries. */
  readonly isCounted: boolean;
  /** It says that it has tried before. */
  readonly isRetry: boolean;
  readonly fingerprint: string;
}

interface Entry {
  readonly turn: ChatTurn;
  readonly fingerprint: string;
}

interface FinishedEntry extends Entry {
  readonly endedAt: number;
}

const keyPattern = /^[\x20-\x7e]+$/;

/** Reads headers of a request; its body is hashed only where a caller may repeat it. */
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
  const isCounted = tries !== undefined;
  const fingerprint = key !== undefined || isCounted ? `${hash('sha256', body)} ${sessionId ?? ''}` : '';
  return { key, isCounted, isRetry: Number(tries ?? 0) > 0, fingerprint };
}

/**
 * Turns that a client may ask for again: the same `Idempotency-Key`, or the same body from a library that says it tries again.
 * A turn is run a second time only when it came to nothing and had run no tool.
 */
export class Replays {
  readonly #timing: ChatTiming;
  /** By key, or by fingerprint. Those that run are bounded already. */
  readonly #running = new Map<string, Entry>();
  /** The one that ended first comes first. */
  readonly #finished = new Map<string, FinishedEntry>();
  #finishedChars = 0;

  constructor(timing: ChatTiming) {
    this.#timing = timing;
  }

  /** The turn that answers this repetition. @throws HttpError 422 when the key came with another body */
  find(repetition: Repetition): ChatTurn | undefined {
    const { key, isRetry, fingerprint } = repetition;
    const name = nameOf(repetition);
    if (name === undefined || (key === undefined && !isRetry)) return undefined;
    this.#forget();
    const entry = this.#running.get(name) ?? this.#finished.get(name);
    if (entry && entry.fingerprint !== fingerprint) {
      throw chatError('idempotencyKeyReused', 'This Idempotency-Key was used for another request.', {
        param: 'Idempotency-Key',
      });
    }
    return entry && isWorthAnother(entry.turn) ? undefined : entry?.turn;
  }

  add(repetition: Repetition, turn: ChatTurn): void {
    const name = nameOf(repetition);
    if (name === undefined) return;
    const entry: Entry = { turn, fingerprint: repetition.fingerprint };
    this.#drop(name);
    this.#running.set(name, entry);
    void turn.ended.then(() => {
      if (this.#running.get(name) === entry) this.#finish(name, entry);
    });
  }

  #finish(name: string, entry: Entry): void {
    this.#running.delete(name);
    this.#finished.set(name, { ...entry, endedAt: performance.now() });
    this.#finishedChars += entry.turn.size;
    this.#forget();
  }

  /** Lets go of what is old, and of the oldest when there is too much. */
  #forget(): void {
    const due = performance.now() - this.#timing.idempotencyMs;
    for (const [name, { endedAt }] of this.#finished) {
      const isTooMuch =
        this.#finished.size > this.#timing.idempotencyEntries || this.#finishedChars > defaults.chat.replayChars;
      if (endedAt > due && !isTooMuch) return;
      this.#drop(name);
    }
  }

  #drop(name: string): void {
    const entry = this.#finished.get(name);
    if (!entry) return;
    this.#finished.delete(name);
    this.#finishedChars -= entry.turn.size;
  }
}

function nameOf({ key, isCounted, fingerprint }: Repetition): string | undefined {
  if (key !== undefined) return `key ${key}`;
  return isCounted ? `body ${fingerprint}` : undefined;
}

const isWorthAnother = ({ outcome, hasRunTools }: ChatTurn): boolean => outcome?.error !== undefined && !hasRunTools;
