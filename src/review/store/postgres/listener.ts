import type { Client, ClientConfig } from 'pg';
import { exponentialBackoffMs, messageOf } from '../../../lib/index.ts';
import type { Logger } from '../../../log/index.ts';
import { limits } from '../limits.ts';

const channel = 'oratorio_review';

interface ListenerOptions {
  readonly connect: (config: ClientConfig) => Client;
  readonly config: ClientConfig;
  readonly logger: Logger;
  /** Receives the hints of other processes. */
  readonly onHint: (payload: string) => void;
  /** Called when listening begins; earlier hints may have been missed. */
  readonly onListening: () => void;
}

/**
 * Receives the hints of other processes on a connection of its own. Reconnects without limit; hints can be missed meanwhile, so
 * `onListening` then wakes all listeners.
 */
export class Listener {
  readonly #options: ListenerOptions;
  #client: Client | undefined;
  #retry: NodeJS.Timeout | undefined;
  #failures = 0;
  #isClosed = false;

  constructor(options: ListenerOptions) {
    this.#options = options;
  }

  /** @returns when it listens, or has failed and scheduled a retry */
  async start(): Promise<void> {
    const client = this.#options.connect(this.#options.config);
    this.#client = client;
    let isOver = false;
    const over = (error?: Error) => {
      if (isOver) return;
      isOver = true;
      this.#lost(client, error);
    };
    client.on('error', over);
    client.on('end', () => over());
    client.on('notification', ({ payload }) => this.#options.onHint(payload ?? ''));
    try {
      await client.connect();
      await client.query(`LISTEN ${channel}`);
      if (isOver || this.#isClosed) return;
      this.#failures = 0;
      this.#options.onListening();
    } catch (error) {
      over(error as Error);
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#retry);
    await this.#client?.end().catch(() => {});
  }

  #lost(client: Client, error: Error | undefined): void {
    if (this.#isClosed) return;
    // A half-open connection still holds a socket.
    void client.end().catch(() => {});
    this.#failures += 1;
    const { logger } = this.#options;
    if (this.#failures === 1)
      logger.warn('Lost the PostgreSQL connection for notifications; polling until reconnected', {
        error: error?.message,
      });
    const delay = exponentialBackoffMs(this.#failures - 1, limits.postgres.relisten, Math.random());
    this.#retry = setTimeout(() => void this.start(), delay).unref();
  }
}

/** Sends hints to other processes: the first at once, hints shortly after it in one message. */
export class Notifier {
  readonly #send: (payload: string) => Promise<unknown>;
  readonly #self: string;
  readonly #logger: Logger;
  readonly #pending = new Set<string>();
  #pause: NodeJS.Timeout | undefined;

  constructor(self: string, logger: Logger, send: (payload: string) => Promise<unknown>) {
    this.#self = self;
    this.#logger = logger;
    this.#send = send;
  }

  notify(what: string): void {
    this.#pending.add(what);
    if (!this.#pause) this.#flush();
  }

  close(): void {
    clearTimeout(this.#pause);
    this.#pending.clear();
  }

  #flush(): void {
    if (this.#pending.size === 0) return;
    const payload = `${this.#self} ${[...this.#pending].join(' ')}`;
    this.#pending.clear();
    this.#send(payload).catch((error: unknown) =>
      this.#logger.debug('Could not send a hint to other processes; they poll', { error: messageOf(error) }),
    );
    this.#pause = setTimeout(() => {
      this.#pause = undefined;
      this.#flush();
    }, limits.notifyMs).unref();
  }
}

export const notification = (payload: string) => ({ text: 'SELECT pg_notify($1, $2)', values: [channel, payload] });
