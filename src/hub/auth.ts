import {
  type Authenticate,
  type AuthorityOptions,
  type bearer,
  bearerToken,
  createProver,
  type Handler,
  keyIdOf,
  ownAuthorities,
} from '../http/index.ts';
import type { Credentials } from './credentials.ts';

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

/** Makes the handler that proves to clients that this Hub holds `token`. */
export function hubProver(token: string, bound: AuthorityOptions['bound']): Handler {
  const own = keyIdOf(token);
  const find = (key: string) => (key === own ? ({ token, use: 'token' } as const) : undefined);
  return createProver({ role: 'hub', find, isOwn: ownAuthorities({ bound }) }).handler;
}
