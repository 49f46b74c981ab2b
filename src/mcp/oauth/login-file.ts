import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { defaults } from '../../protocol/index.ts';
import {
  ensurePrivateDirectory,
  type Lock,
  readUntrustedJson,
  waitForLock,
  writeFileAtomic,
} from '../../supervise/index.ts';
import { McpFailure } from '../failure.ts';
import type { OAuthTokens } from '../library.ts';

const Text = v.pipe(v.string(), v.maxLength(100_000));

/** The user's log-in at one server. Its tokens are used only for this server and this issuer. */
export const StoredLogin = v.object({
  version: v.literal(1),
  serverUrl: Text,
  issuer: Text,
  /** Resource indicator (RFC 8707) of the tokens; absent if the server names none. */
  resource: v.optional(Text),
  client: v.object({
    client_id: Text,
    client_secret: v.optional(Text),
    token_endpoint_auth_method: v.optional(Text),
  }),
  accessToken: Text,
  refreshToken: v.optional(Text),
  scope: v.optional(Text),
  /** Expiry of the access token by this machine's clock, for display only: the server's answer decides. */
  expiresAt: v.optional(Text),
});
export type StoredLogin = v.InferOutput<typeof StoredLogin>;

/** Directory of the log-ins at MCP servers. */
export const loginDirectory = (home: string): string => join(home, 'mcp');

/** Pending changes of this process by file, because the lock of a file excludes only other processes. */
const queues = new Map<string, Promise<unknown>>();

/** File (0600) with the log-in at one server. */
export class LoginFile {
  readonly path: string;
  readonly #serverUrl: string;
  readonly #directory: string;

  /** @param server address without a fragment */
  constructor(home: string, server: URL) {
    this.#directory = loginDirectory(home);
    this.#serverUrl = server.href;
    const key = createHash('sha256').update(server.href).digest('hex').slice(0, 24);
    this.path = join(this.#directory, `${key}.json`);
  }

  /** Returns undefined when the log-in is missing or its file is unusable. */
  read(): StoredLogin | undefined {
    const file = readUntrustedJson(this.path, StoredLogin);
    return file.kind === 'ok' && file.value.serverUrl === this.#serverUrl ? file.value : undefined;
  }

  write(login: Omit<StoredLogin, 'version' | 'serverUrl'>): void {
    ensurePrivateDirectory(this.#directory);
    const stored: StoredLogin = { version: 1, serverUrl: this.#serverUrl, ...login };
    writeFileAtomic(this.path, `${JSON.stringify(stored, null, 2)}\n`);
  }

  remove(): void {
    rmSync(this.path, { force: true });
  }

  /**
   * Calls `use` while no other process or call changes the log-in.
   * @throws McpFailure when another process takes too long
   */
  withLock<T>(use: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const before = queues.get(this.path) ?? Promise.resolve();
    const mine = before.then(() => this.#locked(use, signal));
    const settled = mine.catch(() => {});
    queues.set(this.path, settled);
    void settled.then(() => {
      if (queues.get(this.path) === settled) queues.delete(this.path);
    });
    return mine;
  }

  async #locked<T>(use: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    ensurePrivateDirectory(this.#directory);
    const lock: Lock | 'held' = await waitForLock(`${this.path}.lock`, { waitMs: defaults.mcp.oauth.lockMs, signal });
    if (lock === 'held') throw new McpFailure('timeout', 'Another process is renewing the token. Try again later.');
    try {
      return await use();
    } finally {
      lock.release();
    }
  }
}

/** Fields of a stored log-in that a token response sets. */
export function tokenFields({ access_token, refresh_token, scope, expires_in }: OAuthTokens) {
  const isTime = expires_in !== undefined && expires_in > 0 && expires_in < 1e9;
  return {
    accessToken: access_token,
    ...(refresh_token !== undefined && { refreshToken: refresh_token }),
    ...(scope !== undefined && { scope }),
    ...(isTime && { expiresAt: new Date(Date.now() + expires_in * 1000).toISOString() }),
  };
}
