import { type AnyRoute, type Authenticate, HttpError, type Reply, type RequestContext } from '../../http/index.ts';
import type { HubCaller } from '../auth.ts';
import { withoutTokensOf } from '../mask.ts';
import type { HubRoute } from '../route-table.ts';

/** Gives an entry of the route table its handler. */
export type Bind = (route: HubRoute, handler: (context: RequestContext<never>) => Reply | Promise<Reply>) => AnyRoute;

/** A route that is not for pages: the page token is as good as none. */
export const ownersOnly =
  (auth: Authenticate<HubCaller>): Authenticate<HubCaller> =>
  (request) => {
    if (auth(request) === 'owner') return 'owner';
    throw notForPage();
  };

/** Refusal of the page token. */
export const notForPage = (): HttpError =>
  new HttpError(401, 'unauthorized', 'This route needs the token of the Hub.', {}, [
    ['www-authenticate', 'Bearer error="invalid_token"'],
  ]);

/**
 * Creates the binder of a Hub. Protected routes require `auth`, or `hostAuth` if another Hub may call them. Answers to pages and
 * other Hubs contain no tokens of agent servers.
 */
export function binder(auth: Authenticate<HubCaller>, hostAuth: Authenticate<HubCaller>): Bind {
  return ({ method, path, deadlineMs, auth: isProtected, isForPage, isForHost }, handler) => ({
    method,
    path: path.replace(/\{(\w+)\}/g, ':$1'),
    deadlineMs,
    ...(isProtected && { auth: isForHost ? hostAuth : isForPage ? auth : ownersOnly(auth) }),
    handler(context) {
      const caller: HubCaller | undefined = context.principal;
      const reply = handler(context);
      if (caller !== 'page' && caller !== 'host') return reply;
      return reply instanceof Promise ? reply.then(withoutTokensOf) : withoutTokensOf(reply);
    },
  });
}
