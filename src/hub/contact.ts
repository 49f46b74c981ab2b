import { defaults, type FeedHealth } from '../protocol/index.ts';
import { monotonicMs } from '../supervise/index.ts';

const { healthEventMs, healthEventSlackMs } = defaults.supervise;

/** Listens to a connection. */
export interface ContactListener {
  /** The server has examined itself. */
  readonly onHealth?: (health: FeedHealth) => void;
  /** The connection was open and has ended, at whichever side. */
  readonly onEnded?: () => void;
}

/**
 * The one connection that the Hub keeps open to an agent server, which is that of its inbox, as a sign of life: the server reports its health
 * on it, silence shows that it hangs, and its end that the server may have ended.
 */
export class FeedConnection {
  #heardAt: number | null = null;
  #dueMs: number = healthEventMs;
  readonly #listeners = new Set<ContactListener>();

  get isOpen(): boolean {
    return this.#heardAt !== null;
  }

  /** Milliseconds since the last sign; 0 without a connection. */
  get silentMs(): number {
    return this.#heardAt === null ? 0 : monotonicMs() - this.#heardAt;
  }

  /** Milliseconds of silence that show that the server hangs: it reports its health or sends a heartbeat before, with some slack. */
  get toleratedMs(): number {
    return Math.min(this.#dueMs, defaults.sse.heartbeatMs) + healthEventSlackMs;
  }

  /** Bytes have arrived. */
  heard(): void {
    this.#heardAt = monotonicMs();
  }

  reported(health: FeedHealth): void {
    this.#dueMs = health.nextMs;
    for (const { onHealth } of [...this.#listeners]) onHealth?.(health);
  }

  ended(): void {
    if (this.#heardAt === null) return;
    this.#heardAt = null;
    this.#dueMs = healthEventMs;
    for (const { onEnded } of [...this.#listeners]) onEnded?.();
  }

  /** Returns a function that removes `listener`. */
  listen(listener: ContactListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
