import { isLoopback } from '../../lib/index.ts';
import type { McpServerSettings } from '../../protocol/index.ts';
import { McpFailure } from '../failure.ts';

type HttpSettings = McpServerSettings & { readonly transport: 'streamableHttp' };

/** Whether a server uses the token of a log-in: an HTTP server without a credential in its settings. */
export function usesLogin(settings: McpServerSettings): settings is HttpSettings {
  if (settings.transport !== 'streamableHttp' || settings.bearerTokenEnvVar !== undefined) return false;
  const { username, password } = new URL(settings.url);
  if (username !== '' || password !== '') return false;
  const headers = [...Object.keys(settings.httpHeaders), ...Object.keys(settings.envHttpHeaders)];
  return !headers.some((name) => name.toLowerCase() === 'authorization');
}

/** Canonical address of a server, to which its tokens are bound. */
export function serverAddress({ url }: HttpSettings): URL {
  const address = new URL(url);
  address.hash = '';
  return address;
}

/**
 * Refuses an address to which no token may be sent: plain HTTP, or this machine for a remote server, which would choose a local port.
 *
 * @param server address of the MCP server
 * @throws McpFailure
 */
export function requireSecure(address: URL, server: URL): void {
  const isLocal = isLoopback(address.hostname);
  const isAllowed = isLocal ? isLoopback(server.hostname) : address.protocol === 'https:';
  // A browser hands other schemes on to programs.
  if (isAllowed && /^https?:$/.test(address.protocol)) return;
  const problem = isLocal && !isAllowed ? 'is on this machine, but the server is not' : 'does not use https';
  throw new McpFailure('misconfigured', `${address.origin} ${problem}: nothing is sent there. Correct the url.`, {
    isRetryable: false,
  });
}
