import type { AnyRoute, Authenticate, Reply, RequestContext } from '../../http/index.ts';
import type { HubRoute } from '../route-table.ts';

/** Gives an entry of the route table its handler. */
export type Bind = (route: HubRoute, handler: (context: RequestContext<never>) => Reply | Promise<Reply>) => AnyRoute;

/** Makes the binder of a Hub whose protected routes ask for `auth`. */
export function binder(auth: Authenticate<unknown>): Bind {
  return ({ method, path, deadlineMs, auth: isProtected }, handler) => ({
    method,
    path,
    deadlineMs,
    ...(isProtected && { auth }),
    handler,
  });
}
