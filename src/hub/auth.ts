import {
  type Authenticate,
  type AuthorityOptions,
  type bearer,
  bearerToken,
  createProver,
  type Handler,
  keyIdOf,
  ownAuthorities,
  sameSecret,
} from '../http/index.ts';
import type { Credentials } from './credentials.ts';

/** Sender of a request: the holder of the Hub token in `hub.lock`, or a page with the page token. */
export type HubCaller = 'owner' | 'page';

/** Accepts the Hub token, and the page token where a page may ask. Refuses with 401 like `bearer`. */
export function hubAuth(ownerAuth: ReturnType<typeof bearer>, pageToken: () => string): Authenticate<HubCaller> {
  return (request) => {
    try {
      ownerAuth(request);
      return 'owner';
    } catch (error) {
      const given = bearerToken(request.header('authorization'));
      if (given !== undefined && sameSecret(given, pageToken())) return 'page';
      throw error;
    }
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

/** Makes the handler that proves to clients that this Hub holds its token, and to pages that it holds theirs. */
export function hubProver(token: string, pageToken: () => string, authorities: AuthorityOptions): Handler {
  const own = keyIdOf(token);
  const find = (key: string) => {
    if (key === own) return { token, use: 'token' } as const;
    const page = pageToken();
    return key === keyIdOf(page) ? ({ token: page, use: 'token' } as const) : undefined;
  };
  return createProver({ role: 'hub', find, isOwn: ownAuthorities(authorities) }).handler;
}
