import type { McpServerAuth } from '../../protocol/index.ts';
import { McpFailure } from '../failure.ts';
import type {
  AuthorizationServerMetadata,
  FetchLike,
  loadLibrary,
  OAuthProtectedResourceMetadata,
} from '../library.ts';
import { refused } from './auth-failure.ts';
import { requireSecure } from './subject.ts';

type Library = Awaited<ReturnType<typeof loadLibrary>>;

/** Authorization server of an MCP server, with checked metadata. */
export interface AuthorizationServer {
  readonly issuer: string;
  readonly metadata: AuthorizationServerMetadata;
  /** Resource indicator (RFC 8707); undefined: the server has no metadata of its own, so the parameter may be unknown. */
  readonly resource: string | undefined;
  readonly scope: string | undefined;
}

export interface DiscoveryOptions {
  readonly library: Library;
  readonly fetchFn: FetchLike;
  /** Headers of the settings, which a gateway in front of the server may check. */
  readonly headers: Readonly<Record<string, string>>;
  readonly auth: McpServerAuth | undefined;
}

/** Finds the authorization server of `server` (RFC 9728, RFC 8414). @throws McpFailure, errors of the library */
export async function discover(server: URL, options: DiscoveryOptions): Promise<AuthorizationServer> {
  const { library, fetchFn, auth } = options;
  const challenge = await challengeOf(server, options);
  const found = await library.discoverOAuthServerInfo(server, {
    fetchFn,
    ...(challenge.resourceMetadataUrl && { resourceMetadataUrl: challenge.resourceMetadataUrl }),
  });
  const { authorizationServerMetadata: metadata, resourceMetadata } = found;
  if (!metadata) throw refused('it has no metadata');
  checkMetadata(metadata, server);
  const resource = resourceMetadata && resourceOf(resourceMetadata, server, library);
  const asked = auth?.scopes?.join(' ') ?? challenge.scope ?? resourceMetadata?.scopes_supported?.join(' ');
  return { issuer: metadata.issuer, metadata, resource, scope: withRenewal(asked, metadata) };
}

/** Sends a request without a token, because the refusal names the metadata. */
async function challengeOf(
  server: URL,
  { library, fetchFn, headers }: DiscoveryOptions,
): Promise<ReturnType<Library['extractWWWAuthenticateParams']>> {
  const response = await fetchFn(server, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }),
  });
  return response.status === 401 ? library.extractWWWAuthenticateParams(response) : {};
}

/** @throws McpFailure */
function checkMetadata(metadata: AuthorizationServerMetadata, server: URL): void {
  const { authorization_endpoint, token_endpoint, code_challenge_methods_supported } = metadata;
  requireSecure(new URL(metadata.issuer), server);
  requireSecure(new URL(authorization_endpoint), server);
  requireSecure(new URL(token_endpoint), server);
  if (code_challenge_methods_supported?.includes('S256') !== true) throw refused('it does not offer PKCE with S256');
}

/** @throws McpFailure for metadata of another server */
function resourceOf({ resource }: OAuthProtectedResourceMetadata, server: URL, library: Library): string {
  const requestedResource = library.resourceUrlFromServerUrl(server);
  if (library.checkResourceAllowed({ requestedResource, configuredResource: resource })) return resource;
  throw new McpFailure('misconfigured', 'The metadata of the server is for another address. Correct the url.', {
    isRetryable: false,
  });
}

/** Scopes, plus the scope for renewing a token if the authorization server supports it. */
function withRenewal(scope: string | undefined, { scopes_supported: known }: AuthorizationServerMetadata) {
  const renewal = 'offline_access';
  if (!scope || known?.includes(renewal) !== true || scope.split(' ').includes(renewal)) return scope;
  return `${scope} ${renewal}`;
}
