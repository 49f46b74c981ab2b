import type { McpServerAuth } from '../../protocol/index.ts';
import type { AuthorizationServerMetadata, FetchLike, loadLibrary } from '../library.ts';
import { refused } from './auth-failure.ts';
import type { StoredLogin } from './login-file.ts';

export interface ClientOptions {
  readonly library: Awaited<ReturnType<typeof loadLibrary>>;
  readonly fetchFn: FetchLike;
  readonly auth: McpServerAuth | undefined;
  readonly metadata: AuthorizationServerMetadata;
  readonly redirectUrl: string;
  readonly scope: string | undefined;
}

/**
 * Client of a log-in: the client in the settings, or else a newly registered one (RFC 7591).
 * @throws McpFailure, errors of the library
 */
export async function clientFor(options: ClientOptions): Promise<StoredLogin['client']> {
  const { library, fetchFn, auth, metadata, redirectUrl, scope } = options;
  const { clientId } = auth ?? {};
  const isDocument = library.isHttpsUrl(clientId);
  if (clientId !== undefined && !(isDocument && metadata.client_id_metadata_document_supported !== true)) {
    return { client_id: clientId };
  }
  if (metadata.registration_endpoint === undefined) {
    const reason = isDocument ? 'it does not support client metadata documents' : 'it does not register clients';
    throw refused(
      `${reason}. Register a client there with the redirect http://127.0.0.1/callback, and set auth.clientId`,
    );
  }
  const client = await library.registerClient(metadata.issuer, {
    metadata,
    fetchFn,
    clientMetadata: {
      client_name: 'Oratorio',
      redirect_uris: [redirectUrl],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
      application_type: 'native',
    },
    ...(scope !== undefined && { scope }),
  });
  const { client_id, client_secret, token_endpoint_auth_method } = client;
  return {
    client_id,
    ...(client_secret !== undefined && { client_secret }),
    ...(token_endpoint_auth_method !== undefined && { token_endpoint_auth_method }),
  };
}
