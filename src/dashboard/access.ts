import { createHash, randomBytes } from 'node:crypto';
import {
  type Authenticate,
  bearerToken,
  HttpError,
  keyIdOf,
  offeredSubprotocols,
  type ProvableToken,
  sameSecret,
} from '../http/index.ts';
import { type Backoff, exponentialBackoffMs, jitters } from '../lib/index.ts';
import { type AuthMethods, defaults, type LoginInput, type LoginResult, pageSubprotocol } from '../protocol/index.ts';
import type { DashboardTokens } from '../supervise/index.ts';

const { loginTtlMs, logins, loginFailures, loginPauseMs, loginPauseMaxMs } = defaults.dashboard;
const loginBackoff: Backoff = { firstMs: loginPauseMs, capMs: loginPauseMaxMs, jitter: jitters.none };

/** The way a user got in; for the log. */
export type Caller = 'anonymous' | 'token' | 'login';

export interface AccessOptions {
  /** The current tokens of the workspace's dashboards. */
  readonly tokens: () => DashboardTokens;
  /** `none`: without authentication. Only for listeners that no other user can reach. */
  readonly auth: 'token' | 'none';
  /** Both, or no log-in. */
  readonly username: string;
  readonly password: string;
  /** Milliseconds, monotonic and on the wall clock; for tests. */
  readonly now?: () => number;
  readonly wallClock?: () => number;
}

/** A log-in; its token is stored whole, because the server must prove to hold it. */
interface Session {
  readonly token: string;
  readonly keyId: string;
  readonly expiresAt: number;
}

/**
 * Admits requests with the token of the workspace (a file that only the user can read) or with that of a log-in. No cookies:
 * they are sent to every port of a host, and by every page. Log-ins are stored in memory, and bounded.
 */
export class Access {
  readonly #options: AccessOptions;
  readonly #now: () => number;
  readonly #wallClock: () => number;
  /** By the digest of their token; the oldest first. */
  readonly #sessions = new Map<string, Session>();
  #failures = 0;
  #pausedUntil = 0;

  constructor(options: AccessOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    this.#wallClock = options.wallClock ?? Date.now;
  }

  /** The token that opens the dashboard now. */
  get token(): string {
    return this.#options.tokens().current;
  }

  /** Finds the token that a key id names, for the server proof. */
  readonly find = (keyId: string): ProvableToken | undefined => {
    const { current, earlier } = this.#options.tokens();
    if (keyIdOf(current) === keyId) return { token: current, use: 'token' };
    const replaced = earlier.find((token) => keyIdOf(token) === keyId);
    if (replaced !== undefined) return { token: replaced, use: 'exchange' };
    const session = [...this.#sessions.values()].find((each) => each.keyId === keyId);
    return session && session.expiresAt > this.#wallClock() ? { token: session.token, use: 'token' } : undefined;
  };

  get methods(): AuthMethods['methods'] {
    if (this.#options.auth === 'none') return ['none'];
    return this.#hasLogin ? ['token', 'password'] : ['token'];
  }

  /** Throws HttpError 401. The answer never says which of both was expected. */
  readonly authenticate: Authenticate<Caller> = (request) => {
    const given = bearerToken(request.header('authorization'));
    const caller = this.#callerWith(given);
    if (caller !== undefined) return caller;
    if (this.#options.auth === 'none') return 'anonymous';
    throw unauthorized('The dashboard token is missing or wrong.', given !== undefined);
  };

  #callerWith(token: string | undefined): 'token' | 'login' | undefined {
    if (token === undefined) return undefined;
    if (sameSecret(token, this.token)) return 'token';
    return this.#isLoggedIn(token) ? 'login' : undefined;
  }

  /**
   * Admits a WebSocket: a client that sends headers has its token there, a page offers it beside the subprotocol. A token is
   * needed with every value of `auth`: messages here run commands as this user.
   *
   * Throws HttpError 400, 401.
   */
  readonly authenticateSocket: Authenticate<Caller> = (request) => {
    const offered = offeredSubprotocols(request.header('sec-websocket-protocol'));
    if (!offered.includes(pageSubprotocol)) {
      throw new HttpError(400, 'invalidRequest', `Offer the subprotocol ${pageSubprotocol}.`, null);
    }
    const given = offered.find((name) => name !== pageSubprotocol) ?? bearerToken(request.header('authorization'));
    const caller = this.#callerWith(given);
    if (caller === undefined) throw unauthorized('A conversation needs the dashboard token.', given !== undefined);
    return caller;
  };

  /** Throws HttpError 401 for a wrong name or password, 429 while log-ins must wait, 403 when no log-in is configured. */
  login({ username, password }: { readonly [K in keyof typeof LoginInput.entries]: string }): LoginResult {
    if (!this.#hasLogin) throw new HttpError(403, 'loginDisabled', 'No log-in is configured: use the dashboard token.');
    this.#requirePatience();
    // Both are always compared, so that the time reveals nothing.
    const isRight = [sameSecret(username, this.#options.username), sameSecret(password, this.#options.password)].every(
      Boolean,
    );
    if (!isRight) {
      this.#failures += 1;
      const failuresBeyond = this.#failures - loginFailures;
      if (failuresBeyond >= 0) this.#pausedUntil = this.#now() + exponentialBackoffMs(failuresBeyond, loginBackoff, 0);
      throw unauthorized('The name or the password is wrong.', true);
    }
    this.#failures = 0;
    return this.#begin();
  }

  /** Revokes the token in this header if a log-in issued it. */
  logout(authorization: string | undefined): void {
    const given = bearerToken(authorization);
    if (given !== undefined) this.#sessions.delete(digest(given));
  }

  get #hasLogin(): boolean {
    return this.#options.username !== '' && this.#options.password !== '';
  }

  #requirePatience(): void {
    const waitMs = this.#pausedUntil - this.#now();
    if (waitMs <= 0) return;
    const seconds = Math.ceil(waitMs / 1_000);
    throw new HttpError(429, 'tooManyAttempts', `Too many wrong passwords: try again in ${seconds} s.`, { seconds }, [
      ['retry-after', String(seconds)],
    ]);
  }

  #begin(): LoginResult {
    const token = randomBytes(32).toString('base64url');
    const expiresAt = this.#wallClock() + loginTtlMs;
    this.#sessions.set(digest(token), { token, keyId: keyIdOf(token), expiresAt });
    for (const oldest of this.#sessions.keys()) {
      if (this.#sessions.size <= logins) break;
      this.#sessions.delete(oldest);
    }
    return { token, expiresAt: new Date(expiresAt).toISOString() };
  }

  #isLoggedIn(token: string): boolean {
    const key = digest(token);
    const session = this.#sessions.get(key);
    if (session === undefined) return false;
    if (session.expiresAt > this.#wallClock()) return true;
    this.#sessions.delete(key);
    return false;
  }
}

const digest = (token: string): string => createHash('sha256').update(token).digest('base64');

function unauthorized(message: string, isWrong: boolean): HttpError {
  return new HttpError(401, 'unauthorized', message, null, [
    ['www-authenticate', isWrong ? 'Bearer error="invalid_token"' : 'Bearer'],
  ]);
}
