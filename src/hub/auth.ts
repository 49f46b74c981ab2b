import {
  type Authenticate,
  type AuthorityOptions,
  bearer,
  bearerToken,
  createProver,
  type Handler,
  keyIdOf,
  ownAuthorities,
  secretTest,
} from '../http/index.ts';
import type { Credentials } from './credentials.ts';
import type { ScopedTokens } from './scoped-tokens.ts';

/** Sender of a request: the holder of the Hub token in `hub.lock`, a page with the page token, or the Hub of another machine. */
export type HubCaller = 'owner' | 'page' | 'host';

/** Accepts the Hub token, and the page token where a page may ask. Refuses with 401 like `bearer`. */
export function hubAuth(ownerToken: string, pageToken: () => string): Authenticate<HubCaller> {
  const isOwner = secretTest(ownerToken);
  const isPage = secretTest(pageToken);
  const ownerAuth = bearer(ownerToken);
  return (request) => {
    const given = bearerToken(request.header('authorization'));
    // A page asks often, and an error for each of its requests is dear.
    if (given !== undefined && !isOwner(given) && isPage(given)) return 'page';
    ownerAuth(request);
    return 'owner';
  };
}

/** Accepts the tokens of `auth` and the scoped token of another Hub. Refuses a revoked token with 403 `tokenRevoked`. */
export function hostAuthOf(auth: Authenticate<HubCaller>, tokens: ScopedTokens): Authenticate<HubCaller> {
  return (request) => {
    if (!tokens.isHosts(bearerToken(request.header('authorization')))) return auth(request);
    tokens.auth(request);
    return 'host';
  };
}

/** A client that may post notifications: the holder of the Hub token (scope null), or one agent server for its workspace. */
export interface Principal {
  readonly scope: string | null;
}

/** Accepts the Hub token, or the scoped token of an agent server. Refuses with 401 like `bearer`. */
export function notifierAuth(hubAuth: ReturnType<typeof bearer>, credentials: Credentials): Authenticate<Principal> {
  return (request) => {
    const token = bearerToken(request.header('authorization'));
    const scope = token === undefined ? null : credentials.notificationScope(token);
    if (scope !== null) return { scope };
    hubAuth(request);
    return { scope: null };
  };
}

/** Creates the handler that proves to clients, pages and other Hubs that this Hub holds their token. */
export function hubProver(
  token: string,
  pageToken: () => string,
  tokens: Pick<ScopedTokens, 'ofHost'>,
  authorities: AuthorityOptions,
): Handler {
  const own = keyIdOf(token);
  const find = (key: string) => {
    if (key === own) return { token, use: 'token' } as const;
    const page = pageToken();
    const found = key === keyIdOf(page) ? page : tokens.ofHost(key);
    return found === undefined ? undefined : ({ token: found, use: 'token' } as const);
  };
  return createProver({ role: 'hub', find, isOwn: ownAuthorities(authorities) }).handler;
}
