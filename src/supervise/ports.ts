import { createServer, type Server } from 'node:net';
import { messageOf } from '../lib/index.ts';
import { defaults } from '../protocol/index.ts';
import { monotonicMs } from './clock.ts';

/** The system has no loopback port for us. */
export class PortUnavailableError extends Error {
  override readonly name = 'PortUnavailableError';
}

/** Settings of a `PortAllocator`; `now` (milliseconds, monotonic) is for tests. */
export interface PortAllocatorOptions {
  readonly host?: string;
  readonly cooldownMs?: number;
  readonly now?: () => number;
}

const attempts = 64;

/**
 * Hands out loopback ports for children that need them in advance. The kernel chooses, and the port is released at once: another program
 * may still take the port before the child binds it, so the child must be ready to find it taken.
 */
export class PortAllocator {
  readonly #host: string;
  readonly #cooldownMs: number;
  readonly #now: () => number;
  /** Port → when it may be handed out again. Insertion order is order of expiry. */
  readonly #handedOut = new Map<number, number>();

  constructor({
    host = '127.0.0.1',
    cooldownMs = defaults.supervise.portCooldownMs,
    now = monotonicMs,
  }: PortAllocatorOptions = {}) {
    this.#host = host;
    this.#cooldownMs = cooldownMs;
    this.#now = now;
  }

  /** Returns a port that was free just now and was not given out within the cool-down. @throws PortUnavailableError */
  async allocate(): Promise<number> {
    this.#forgetExpired();
    // A port we must not use stays bound during the search, so that the kernel offers another one.
    const refused: Server[] = [];
    try {
      for (let attempt = 0; attempt < attempts; attempt++) {
        const { server, port } = await bind(this.#host);
        refused.push(server);
        if (this.#handedOut.has(port)) continue;
        this.#handedOut.set(port, this.#now() + this.#cooldownMs);
        return port;
      }
    } catch (error) {
      const reason = messageOf(error);
      throw new PortUnavailableError(`No local port is available: ${reason}`, { cause: error });
    } finally {
      await Promise.all(refused.map(close));
    }
    throw new PortUnavailableError(`No local port is available: the last ${attempts} were all handed out recently`);
  }

  /** How many ports wait until they may be handed out again. */
  get cooling(): number {
    return this.#handedOut.size;
  }

  #forgetExpired(): void {
    const now = this.#now();
    for (const [port, until] of this.#handedOut) {
      if (until > now) return;
      this.#handedOut.delete(port);
    }
  }
}

function bind(host: string): Promise<{ server: Server; port: number }> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen({ host, port: 0, exclusive: true }, () => {
      const address = server.address();
      if (address === null || typeof address === 'string') reject(new Error('the socket has no port'));
      else resolve({ server, port: address.port });
    });
  });
}

const close = (server: Server): Promise<void> => new Promise((resolve) => server.close(() => resolve()));
