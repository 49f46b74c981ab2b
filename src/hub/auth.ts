import { type Authenticate, type bearer, bearerToken } from '../http/index.ts';
import type { Credentials } from './credentials.ts';

/** Who may post a notification: the holder of the Hub token (scope null), or one agent server for its workspace. */
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
