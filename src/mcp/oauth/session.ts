import { type FSWatcher, watch } from 'node:fs';
import { basename } from 'node:path';
import { redactorFor } from '../../lib/index.ts';
import { ensurePrivateDirectory } from '../../supervise/index.ts';
import { McpFailure, needsLogin } from '../failure.ts';
import { type AuthProvider, type FetchLike, loadLibrary } from '../library.ts';
import { authFailureOf, endsLogin } from './auth-failure.ts';
import { authFetch } from './auth-fetch.ts';
import { LoginFile, loginDirectory, type StoredLogin, tokenFields } from './login-file.ts';
import { requireSecure } from './subject.ts';

type Refusal = Parameters<NonNullable<AuthProvider['onUnauthorized']>>[0];

/** Most tokens to remember, both for removal from texts and as refused by the server. */
const rememberedTokens = 12;

/**
 * Log-in at one server, for its connections. Each request reads the token from the file, so a log-in in another process takes effect at
 * once. The token is renewed when the server refuses it, not by a clock.
 */
export class LoginSession implements AuthProvider {
  /** Name of the server in the settings. */
  readonly name: string;
  readonly #home: string;
  readonly #server: URL;
  readonly #file: LoginFile;
  /** Tokens of the refused requests. */
  readonly #sent = new WeakMap<Response, string>();
  #tokens: readonly string[] = [];
  #refused: readonly string[] = [];

  constructor({ name, home, server }: { readonly name: string; readonly home: string; readonly server: URL }) {
    this.name = name;
    this.#home = home;
    this.#server = server;
    this.#file = new LoginFile(home, server);
  }

  /** Removes the tokens of this log-in from a text. */
  readonly clean = (text: string): string => (this.#tokens.length === 0 ? text : redactorFor(this.#tokens)(text));

  async token(): Promise<string | undefined> {
    const login = this.#read();
    if (login) requireSecure(this.#server, this.#server);
    return login?.accessToken;
  }

  /** Wraps `base` and records the token of each refused request. */
  noteRefusals(base: FetchLike): FetchLike {
    return async (url, init) => {
      const response = await base(url, init);
      const token = /^Bearer (.+)$/.exec(new Headers(init?.headers).get('authorization') ?? '')?.[1];
      if (response.status === 401 && token !== undefined) {
        this.#sent.set(response, token);
        this.#refused = latest([token], this.#refused);
      }
      return response;
    };
  }

  /** Renews a refused token, unless another call or process has already done so. @throws McpFailure */
  async onUnauthorized({ response }: Refusal): Promise<void> {
    if (!this.#read()) throw needsLogin(this.name);
    try {
      await this.#file.withLock(() => this.#renew(this.#sent.get(response)));
    } catch (error) {
      if (endsLogin(error)) throw needsLogin(this.name);
      throw authFailureOf(error);
    }
  }

  /** Calls `onStored` when a token that the server has not refused is stored. @returns function that ends the watch */
  watch(onStored: () => void): () => void {
    const check = () => {
      const token = this.#read()?.accessToken;
      if (token !== undefined && !this.#refused.includes(token)) onStored();
    };
    const directory = loginDirectory(this.#home);
    ensurePrivateDirectory(directory);
    const watcher: FSWatcher = watch(directory, { persistent: false }, (_event, name) => {
      if (name === null || name === basename(this.#file.path)) check();
    });
    watcher.on('error', () => watcher.close());
    check();
    return () => watcher.close();
  }

  #read(): StoredLogin | undefined {
    const login = this.#file.read();
    const { accessToken, refreshToken, client } = login ?? {};
    const secrets = [accessToken, refreshToken, client?.client_secret].filter((secret) => secret !== undefined);
    if (secrets.some((secret) => !this.#tokens.includes(secret))) this.#tokens = latest(secrets, this.#tokens);
    return login;
  }

  async #renew(rejected: string | undefined): Promise<void> {
    const login = this.#read();
    if (login && login.accessToken !== rejected) return;
    if (login?.refreshToken === undefined) throw needsLogin(this.name);
    const { issuer, client, refreshToken, resource } = login;
    const library = await loadLibrary();
    const fetchFn = authFetch(this.#server);
    const metadata = await library.discoverAuthorizationServerMetadata(issuer, { fetchFn });
    if (!metadata)
      throw new McpFailure('unreachable', 'The metadata of the authorization server is unavailable. Try again later.');
    try {
      const tokens = await library.refreshAuthorization(issuer, {
        metadata,
        clientInformation: client,
        refreshToken,
        fetchFn,
        ...(resource !== undefined && { resource }),
      });
      const { version: _version, serverUrl: _serverUrl, expiresAt: _expiresAt, ...kept } = login;
      this.#file.write({ ...kept, ...tokenFields(tokens) });
      this.#read();
    } catch (error) {
      // The issuer may treat a second use of the same refresh token as theft.
      if (endsLogin(error)) this.#file.remove();
      throw error;
    }
  }
}

const latest = (added: readonly string[], known: readonly string[]): readonly string[] =>
  [...new Set([...added, ...known])].slice(0, rememberedTokens);
