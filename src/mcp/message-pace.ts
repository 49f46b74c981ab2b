import { setTimeout as sleep } from 'node:timers/promises';
import { defaults } from '../protocol/index.ts';
import type { LinkEnd } from './link.ts';

const { messagesPerSecond, messagesAtOnce, unreadAnswers } = defaults.mcp;

/**
 * Number of messages that a server may send: a reader of its messages waits after too many. The server is held back, and other work of the
 * process has its turn.
 */
export class MessagePace {
  #credit: number = messagesAtOnce;
  #countedAt = performance.now();

  /** Counts messages. @returns time in milliseconds to read nothing more; 0: none */
  spend(messages: number): number {
    const now = performance.now();
    const earned = ((now - this.#countedAt) * messagesPerSecond) / 1_000;
    this.#credit = Math.min(this.#credit + earned, messagesAtOnce) - messages;
    this.#countedAt = now;
    return this.#credit >= 0 ? 0 : (-this.#credit * 1_000) / messagesPerSecond;
  }

  /** Counts messages, and waits. */
  async wait(messages: number, signal?: AbortSignal): Promise<void> {
    const ms = this.spend(messages);
    if (ms > 0) await sleep(ms, undefined, { ref: false, ...(signal && { signal }) });
  }
}

/** Answers to requests of a server that it has not taken yet. Too many of them end the connection: they fill the memory. */
export class UnreadAnswers {
  #count = 0;
  readonly #onTooMany: (end: LinkEnd) => void;

  constructor(onTooMany: (end: LinkEnd) => void) {
    this.#onTooMany = onTooMany;
  }

  /** Waits for an answer to be taken. */
  async during(taken: Promise<unknown>): Promise<void> {
    this.#count += 1;
    if (this.#count > unreadAnswers) {
      this.#onTooMany({
        code: 'protocol',
        message: `It has not read ${unreadAnswers} answers to its own requests.`,
        isRetryable: true,
      });
    }
    try {
      await taken;
    } finally {
      this.#count -= 1;
    }
  }
}
