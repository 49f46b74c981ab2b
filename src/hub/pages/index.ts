/**
 * Serves the pages of workspaces on the Hub's own origin: below `/w/<id>/`, and below `/h/<host>/w/<id>/` for other machines.
 * One address, one token and one tunnel are enough for all pages. The files come from the Hub; Dashboard API, streams and
 * WebSockets are passed on to the agent server, whose tokens never reach a client.
 */
import {
  type AnyRoute,
  type AnyWebSocketRoute,
  type Authenticate,
  bearerToken,
  empty,
  type Guard,
  type Header,
  HttpError,
  isForeign,
  type Method,
  type Reply,
  type RequestContext,
  securityHeaders,
} from '../../http/index.ts';
import { defaults, missingRoute } from '../../protocol/index.ts';
import type { HubCaller } from '../auth.ts';
import { hubError } from '../errors.ts';
import { pageDocument } from './document.ts';
import { createForwarder } from './forward.ts';
import { innerPathOf, type PagePath, pagePathOf } from './inner-path.ts';
import type { Target } from './target.ts';
import { tunnelRoute } from './tunnel.ts';

export { hostTarget, onHost } from './host-target.ts';
export { Readers } from './readers.ts';
export { createTargets, unavailable } from './target.ts';

const patterns = ['/w/*', '/h/*'];
const methods: readonly Method[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
const isBelow = (path: string): boolean => path.startsWith('/w/') || path.startsWith('/h/');

export interface PagesOptions {
  readonly auth: Authenticate<HubCaller>;
  /** Whether this token opens a WebSocket: the page token, or a token of another Hub where `host` is null. */
  readonly isToken: (token: string, host: string | null) => boolean;
  /** See `ScopedTokens.onRevoked`. */
  readonly onRevoked: (token: string | undefined, end: () => void) => () => void;
  readonly isKnown: (asked: PagePath) => boolean;
  /** See `createTargets`. */
  readonly targetOf: (asked: PagePath, signal: AbortSignal) => Promise<Target>;
}

export interface Pages {
  readonly routes: readonly AnyRoute[];
  readonly webSockets: readonly AnyWebSocketRoute[];
  /** Refuses requests of other pages below `/w/`, before they are routed. A link to a page may be anywhere. */
  readonly guard: Guard;
  readonly headers: (path: string | undefined) => readonly Header[];
  close(): void;
}

export function workspacePages(options: PagesOptions): Pages {
  const { auth, isToken, onRevoked, isKnown, targetOf } = options;
  const forwarder = createForwarder();
  const document = pageDocument();

  /** The page itself, open to everybody: there is no data in it and no token. */
  function page(context: RequestContext<never>, asked: PagePath): Reply {
    if (!isKnown(asked)) throw hubError('notFound', 'There is no such workspace.');
    return asked.rest === '/' ? document(context) : empty(308, [['location', `${context.path}/`]]);
  }

  function serve(context: RequestContext<never>): Reply | Promise<Reply> {
    const asked = pagePathOf(context.path);
    if (context.method === 'GET' && asked && isRoot(asked.rest)) return page(context, asked);
    const caller = auth(context);
    if (asked === undefined) throw hubError('notFound', 'There is no such workspace.');
    // Another Hub reaches the workspaces of this machine, and no third machine.
    if (caller === 'host' && asked.host !== null)
      throw new HttpError(401, 'unauthorized', 'This route needs the token of the Hub or of its pages.');
    const inner = innerPathOf(asked.rest);
    if (inner === undefined) throw hubError('notFound', missingRoute);
    return pass(context, asked, inner);
  }

  async function pass(context: RequestContext<never>, asked: PagePath, inner: string): Promise<Reply> {
    const target = await targetOf(asked, context.signal);
    const reply = await forwarder.forward(context, target, `${target.prefix ?? ''}${inner}${searchOf(context.query)}`);
    // A stream ends with the token that opened it.
    if (reply.kind === 'pipe') {
      const { body } = reply;
      body.once(
        'close',
        onRevoked(bearerToken(context.header('authorization')), () => body.destroy()),
      );
    }
    return reply;
  }

  return {
    routes: patterns.flatMap((path) =>
      methods.map((method) => ({
        ...{ method, path, handler: serve },
        deadlineMs: defaults.http.longRequestDeadlineMs,
      })),
    ),
    webSockets: patterns.map((path) => tunnelRoute({ path, isToken, onRevoked, targetOf }) as AnyWebSocketRoute),
    guard(request) {
      if (!isBelow(request.path)) return;
      const host = request.header('host') ?? '';
      const site = request.header('sec-fetch-site');
      const origin = request.header('origin');
      // Checks both headers where both are sent: a Sec-Fetch-Site of ours does not excuse a foreign Origin.
      const isOurs = site !== 'none' && !isForeign(host, site, origin) && !isForeign(host, undefined, origin);
      if (!isOurs && !isDocument(request.path))
        throw new HttpError(403, 'originNotAllowed', 'The request comes from a page of another origin.');
    },
    headers: (path) => (path !== undefined && isBelow(path) ? dataHeaders : []),
    close: () => forwarder.close(),
  };
}

function searchOf(query: URLSearchParams): string {
  if (query.size === 0) return '';
  const passed = new URLSearchParams(query);
  passed.delete('token');
  return passed.size === 0 ? '' : `?${passed}`;
}

const isRoot = (rest: string): boolean => rest === '' || rest === '/';

function isDocument(path: string): boolean {
  const asked = pagePathOf(path);
  return asked !== undefined && isRoot(asked.rest);
}

const dataHeaders: readonly Header[] = [...securityHeaders, ['cache-control', 'no-store']];
