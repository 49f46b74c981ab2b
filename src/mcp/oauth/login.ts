import { defaults, type McpServerSettings } from '../../protocol/index.ts';
import { McpFailure } from '../failure.ts';
import { type FetchLike, loadLibrary, type OAuthTokens } from '../library.ts';
import { authFailureOf, refused } from './auth-failure.ts';
import { authFetch } from './auth-fetch.ts';
import { type AuthorizationServer, discover } from './authorization-server.ts';
import { clientFor } from './client.ts';
import { LoginFile, type StoredLogin, tokenFields } from './login-file.ts';
import { RedirectListener } from './redirect.ts';
import { requireSecure, serverAddress, usesLogin } from './subject.ts';

type Library = Awaited<ReturnType<typeof loadLibrary>>;

export interface LoginOptions {
  readonly home: string;
  readonly settings: McpServerSettings;
  /** Ends the log-in. */
  readonly signal: AbortSignal;
}

interface Begun {
  readonly library: Library;
  readonly fetchFn: FetchLike;
  readonly file: LoginFile;
  readonly signal: AbortSignal;
  readonly listener: RedirectListener;
  readonly server: AuthorizationServer;
  readonly client: StoredLogin['client'];
  readonly authorizationUrl: URL;
  readonly codeVerifier: string;
}

/** One log-in of the user at a server: the user opens `url`, and `finished` stores the tokens. */
export class Login {
  readonly #begun: Begun;

  /** Asks the authorization server and listens for its redirect. @throws McpFailure */
  static async begin({ home, settings, signal }: LoginOptions): Promise<Login> {
    if (!usesLogin(settings)) {
      const problem = 'The server has a credential of its own, or is a program: it needs no log-in.';
      throw new McpFailure('misconfigured', problem, { isRetryable: false });
    }
    const address = serverAddress(settings);
    requireSecure(address, address);
    const limited = AbortSignal.any([signal, AbortSignal.timeout(defaults.mcp.oauth.loginMs)]);
    const { auth, httpHeaders: headers } = settings;
    const listener = await RedirectListener.open();
    try {
      const library = await loadLibrary();
      const fetchFn = authFetch(address, limited);
      const server = await discover(address, { library, fetchFn, headers, auth });
      const { metadata, scope, resource } = server;
      const redirectUrl = listener.url;
      const client = await clientFor({ library, fetchFn, auth, metadata, redirectUrl, scope });
      const started = await library.startAuthorization(server.issuer, {
        metadata,
        clientInformation: client,
        redirectUrl,
        state: listener.state,
        ...(scope !== undefined && { scope }),
        ...(resource !== undefined && { resource }),
      });
      const file = new LoginFile(home, address);
      return new Login({ library, fetchFn, file, signal: limited, listener, server, client, ...started });
    } catch (error) {
      await listener.close();
      throw authFailureOf(error);
    }
  }

  private constructor(begun: Begun) {
    this.#begun = begun;
  }

  /** Address for the browser. */
  get url(): string {
    return this.#begun.authorizationUrl.href;
  }

  get issuer(): string {
    return this.#begun.server.issuer;
  }

  /** See `RedirectListener.paste`. */
  paste(address: string): string | undefined {
    return this.#begun.listener.paste(address);
  }

  /** Stops listening. */
  close(): Promise<void> {
    return this.#begun.listener.close();
  }

  /** Resolves with the stored log-in when the browser has come back. @throws McpFailure */
  async finished(): Promise<StoredLogin> {
    const { listener, signal, file } = this.#begun;
    try {
      const { params, reply } = await listener.answer(signal).catch((error: unknown) => {
        throw (error as Error).name === 'TimeoutError' ? tooLate() : error;
      });
      try {
        const tokens = await this.#redeem(params);
        await file.withLock(async () => file.write(this.#stored(tokens)), signal);
        reply(true);
      } catch (error) {
        reply(false);
        throw error;
      }
    } catch (error) {
      throw authFailureOf(error);
    } finally {
      await listener.close();
    }
    const stored = file.read();
    if (!stored) throw new McpFailure('protocol', `${file.path} cannot be read. Log in again.`);
    return stored;
  }

  /** @throws errors of the library, McpFailure */
  #redeem(params: URLSearchParams): Promise<OAuthTokens> {
    const { library, fetchFn, listener, server, client, codeVerifier } = this.#begun;
    const { metadata, resource } = server;
    const iss = params.get('iss') ?? undefined;
    // Before the rest is read: it may come from another authorization server (RFC 9207).
    library.validateAuthorizationResponseIssuer({
      iss,
      expectedIssuer: metadata.issuer,
      issParameterSupported: metadata['authorization_response_iss_parameter_supported'] === true,
    });
    const code = params.get('code');
    if (code === null) throw refused(/^[a-z_]{1,60}$/.exec(params.get('error') ?? '')?.[0] ?? 'it sends no code');
    return library.exchangeAuthorization(metadata.issuer, {
      metadata,
      clientInformation: client,
      authorizationCode: code,
      codeVerifier,
      redirectUri: listener.url,
      fetchFn,
      ...(iss !== undefined && { iss }),
      ...(resource !== undefined && { resource }),
    });
  }

  #stored(tokens: OAuthTokens): Omit<StoredLogin, 'version' | 'serverUrl'> {
    const { server, client } = this.#begun;
    const { issuer, resource, scope } = server;
    return {
      issuer,
      client,
      ...(resource !== undefined && { resource }),
      ...tokenFields({ ...(scope !== undefined && { scope }), ...tokens }),
    };
  }
}

const tooLate = (): McpFailure =>
  new McpFailure('timeout', `The browser did not come back within ${defaults.mcp.oauth.loginMs / 60_000} minutes.`);
