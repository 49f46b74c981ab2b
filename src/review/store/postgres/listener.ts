import { type RawBuilder, sql } from 'kysely';
import type { Client } from 'pg';
import { exponentialBackoffMs, messageOf } from '../../../lib/index.ts';
import type { Logger } from '../../../log/index.ts';
import { limits } from '../limits.ts';

const channel = 'oratorio_review';

interface ListenerOptions {
  /** Makes a client that is not connected. */
  readonly connect: () => Client;
  readonly logger: Logger;
  /** Receives the hints of other processes. */
  readonly onHint: (payload: string) => void;
  /** Called when listening begins; earlier hints may have been missed. */
  readonly onListening: () => void;
}

/**
 * Receives the hints of other processes on a separate connection. Reconnects without limit; hints can be missed in between, so
 * `onListening` then wakes all listeners.
 */
export class Listener {
  readonly #options: ListenerOptions;
  #client: Client | undefined;
  #retry: NodeJS.Timeout | undefined;
  #probes: NodeJS.Timeout | undefined;
  #failures = 0;
  #isClosed = false;

  constructor(options: ListenerOptions) {
    this.#options = options;
  }

  /** @returns when it listens, or has failed and scheduled a retry */
  async start(): Promise<void> {
    const client = this.#options.connect();
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
      await answered(client, `LISTEN ${channel}`, limits.postgres.connectMs);
      if (isOver || this.#isClosed) return;
      this.#listens(client, over);
    } catch (error) {
      over(error as Error);
    }
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#retry);
    clearInterval(this.#probes);
    this.#client?.connection.stream.destroy();
  }

  /** A peer that vanished sends no notifications, and no error. */
  #listens(client: Client, over: (error?: Error) => void): void {
    const { logger, onListening } = this.#options;
    if (this.#failures >= limits.postgres.listenFailures) logger.info('Receiving PostgreSQL notifications again');
    this.#failures = 0;
    this.#probes = setInterval(
      () => void answered(client, 'SELECT 1', limits.postgres.probeMs).catch(over),
      limits.postgres.listenProbeMs,
    ).unref();
    onListening();
  }

  #lost(client: Client, error: Error | undefined): void {
    if (this.#isClosed) return;
    clearInterval(this.#probes);
    // A half-open connection still holds a socket, and never confirms its end.
    client.connection.stream.destroy();
    this.#failures += 1;
    const { logger } = this.#options;
    // An outage of the database is logged by the store; this is for a connection that fails alone.
    if (this.#failures === limits.postgres.listenFailures)
      logger.warn('Lost the PostgreSQL connection for notifications; polling until reconnected', {
        error: error?.message,
      });
    const delay = exponentialBackoffMs(this.#failures - 1, limits.postgres.relisten, Math.random());
    this.#retry = setTimeout(() => void this.start(), delay).unref();
  }
}

/** Runs a statement; without an answer in time the connection is destroyed. */
async function answered(client: Client, text: string, withinMs: number): Promise<void> {
  const deadline = setTimeout(() => client.connection.stream.destroy(), withinMs);
  try {
    await client.query(text);
  } finally {
    clearTimeout(deadline);
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

/** Statement that sends a payload to all listeners. */
export const notification = (payload: string): RawBuilder<unknown> => sql`select pg_notify(${channel}, ${payload})`;
