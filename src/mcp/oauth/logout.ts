import type { McpServerSettings } from '../../protocol/index.ts';
import { loadLibrary } from '../library.ts';
import { authFetch } from './auth-fetch.ts';
import { LoginFile, type StoredLogin } from './login-file.ts';
import { serverAddress, usesLogin } from './subject.ts';

/** Result of a log-out. */
export interface EndedLogin {
  readonly wasLoggedIn: boolean;
  /** Whether the authorization server has revoked the token; otherwise it stays valid until it expires. */
  readonly isRevoked: boolean;
}

/** Removes the log-in at a server, then asks its authorization server to revoke the token (RFC 7009). @throws McpFailure */
export async function endLogin(home: string, settings: McpServerSettings, signal?: AbortSignal): Promise<EndedLogin> {
  if (!usesLogin(settings)) return { wasLoggedIn: false, isRevoked: false };
  const server = serverAddress(settings);
  const file = new LoginFile(home, server);
  const login = await file.withLock(async () => {
    const stored = file.read();
    file.remove();
    return stored;
  }, signal);
  if (!login) return { wasLoggedIn: false, isRevoked: false };
  // The token is deleted here even if the authorization server does not answer.
  const isRevoked = await revoke(login, server, signal).catch(() => false);
  return { wasLoggedIn: true, isRevoked };
}

async function revoke(login: StoredLogin, server: URL, signal: AbortSignal | undefined): Promise<boolean> {
  const library = await loadLibrary();
  const fetchFn = authFetch(server, signal);
  const metadata = await library.discoverAuthorizationServerMetadata(login.issuer, { fetchFn });
  const endpoint = metadata && 'revocation_endpoint' in metadata ? metadata.revocation_endpoint : undefined;
  if (typeof endpoint !== 'string') return false;
  const { client_id, client_secret } = login.client;
  const body = new URLSearchParams({ token: login.refreshToken ?? login.accessToken, client_id });
  if (client_secret !== undefined) body.set('client_secret', client_secret);
  const { ok } = await fetchFn(endpoint, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body,
  });
  return ok;
}
