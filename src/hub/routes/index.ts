import * as v from 'valibot';
import type { AnyRoute, Authenticate, Handler, Reply, RequestContext, SseSource } from '../../http/index.ts';
import { bytes, HttpError, json, jsonBytes, sse } from '../../http/index.ts';
import type { HubStatus, NotificationRequest, RecentEvent } from '../../protocol/index.ts';
import type { HubCaller, Principal } from '../auth.ts';
import { hubError } from '../errors.ts';
import { parseNotification } from '../notifications.ts';
import type { Registry } from '../registry.ts';
import { hubRoutes } from '../route-table.ts';
import { appServerRoutes } from './appservers.ts';
import { binder } from './bind.ts';
import { type DelegatedRoutesOptions, delegatedRoutes } from './delegated.ts';
import { type FleetRoutesOptions, fleetRoutes } from './fleet.ts';
import { type HostRoutesOptions, hostRoutes } from './hosts.ts';
import { type InboxRoutesOptions, inboxRoutes } from './inbox.ts';
import { exitsRoute, logRoute } from './logs.ts';
import { type ModelRoutesOptions, modelRoutes } from './model.ts';
import { type MoveRoutesOptions, moveRoutes } from './moves.ts';
import { type PageRoutesOptions, pageApiRoutes } from './page.ts';
import { type PushRoutesOptions, pushRoutes } from './push.ts';
import { type ThreadRoutesOptions, threadRoutes } from './threads.ts';
import { type WorkspaceRoutesOptions, workspaceRoutes } from './workspaces.ts';

export interface RoutesOptions
  extends PageRoutesOptions,
    InboxRoutesOptions,
    PushRoutesOptions,
    ThreadRoutesOptions,
    DelegatedRoutesOptions,
    HostRoutesOptions,
    FleetRoutesOptions,
    MoveRoutesOptions,
    ModelRoutesOptions,
    WorkspaceRoutesOptions {
  readonly registry: Registry;
  readonly status: () => HubStatus;
  readonly events: SseSource;
  /** Events that are held, oldest first. */
  readonly recentEvents: () => readonly RecentEvent[];
  /** Accepts the Hub token and the page token. */
  readonly auth: Authenticate<HubCaller>;
  /** Also accepts the token of another Hub. */
  readonly hostAuth: Authenticate<HubCaller>;
  /** Accepts the Hub token or the scoped token of an agent server. */
  readonly notifierAuth: Authenticate<Principal>;
  /** Proves that this Hub holds its token. */
  readonly prove: Handler;
  readonly isStopping: () => boolean;
  readonly notify: (request: v.InferOutput<typeof NotificationRequest>, workspacePath: string | null) => void;
  readonly shutdown: (mode: 'stop' | 'detach') => void;
  readonly openApi: () => Promise<unknown>;
  readonly charts: () => Promise<unknown>;
  readonly metrics: () => Promise<{ readonly contentType: string; readonly text: string }>;
}

/** `Last-Event-ID` of a reconnecting reader; the query parameter serves those that cannot send headers (design §4). */
function lastEventId(context: RequestContext<never>): string | undefined {
  return context.header('last-event-id') ?? context.query.get('lastEventId') ?? undefined;
}

/** Serves events; a stream of another Hub ends when its token is revoked. */
function eventsFor({ events, tokens }: RoutesOptions, context: RequestContext<never>): SseSource {
  const caller: HubCaller = context.principal;
  return caller === 'host' ? tokens.untilRevoked(tokens.auth(context).tokenId, events) : events;
}

/** Makes an answer that never changes once, at the first request. */
function constant(make: () => Promise<unknown>): () => Promise<Reply> {
  let reply: Promise<Reply> | undefined;
  return () => (reply ??= make().then((value) => jsonBytes(200, Buffer.from(JSON.stringify(value)))));
}

async function notification(options: RoutesOptions, context: RequestContext<Principal>): Promise<Reply> {
  const body = await context.json(v.unknown()).catch((error: unknown) => {
    if (!(error instanceof HttpError) || error.code !== 'invalidRequest') throw error;
    throw hubError('invalidNotification', 'The notification is not valid JSON.', { field: null });
  });
  const request = parseNotification(body);
  const { scope } = context.principal;
  // Events of all kinds name a workspace by its canonical path.
  const named = typeof request.workspacePath === 'string' ? request.workspacePath : null;
  const workspacePath = scope ?? (named === null ? null : options.registry.canonical(named));
  options.notify(request, workspacePath);
  return json(200, { accepted: true });
}

function recentEvents(options: RoutesOptions, requested: string | null, kind: string | null): readonly RecentEvent[] {
  const path = requested === null ? null : canonicalOr(options.registry, requested);
  return options
    .recentEvents()
    .filter((event) => (path === null || event.workspacePath === path) && (kind === null || event.kind === kind));
}

/** Events of a workspace that has been deleted are found by the path that they name. */
function canonicalOr(registry: Registry, path: string): string {
  try {
    return registry.canonical(path);
  } catch (error) {
    if (error instanceof HttpError) return path;
    throw error;
  }
}

/** Every route of the Hub API (specification §4.2, design §5). */
export function bindRoutes(options: RoutesOptions): AnyRoute[] {
  const { registry } = options;
  const bind = binder(options.auth, options.hostAuth);
  let status: Reply | undefined;
  const readStatus = (): Reply => {
    const found = options.status();
    const reply = jsonBytes(200, Buffer.from(JSON.stringify(found)));
    // A problem lasts until the user deletes the copy of a damaged file; none begins after the start.
    if (found.problems === undefined) status = reply;
    return reply;
  };

  function shutdown({ query }: RequestContext<never>): Reply {
    const mode = query.get('mode') ?? 'stop';
    if (mode !== 'stop' && mode !== 'detach') throw hubError('invalidRequest', 'mode must be stop or detach.');
    options.shutdown(mode);
    return json(200, { ok: true });
  }

  return [
    bind(hubRoutes.getStatus, () => status ?? readStatus()),
    bind(hubRoutes.prove, options.prove),
    bind(hubRoutes.shutDown, shutdown),
    ...appServerRoutes(bind, registry, options.isStopping),
    ...workspaceRoutes(bind, options),
    ...modelRoutes(bind, options),
    exitsRoute(bind, registry),
    logRoute(bind, registry),
    ...inboxRoutes(bind, options),
    ...pushRoutes(bind, options),
    ...threadRoutes(bind, options),
    ...hostRoutes(bind, options),
    ...fleetRoutes(bind, options, lastEventId),
    ...moveRoutes(bind, options),
    ...delegatedRoutes(bind, options),
    bind(hubRoutes.streamEvents, (context) => sse(eventsFor(options, context), lastEventId(context))),
    bind(hubRoutes.recentEvents, ({ query }) => json(200, recentEvents(options, query.get('path'), query.get('kind')))),
    ...pageApiRoutes(bind, options, lastEventId),
    {
      ...bind(hubRoutes.requestNotification, (context) => notification(options, context)),
      auth: options.notifierAuth,
    },
    bind(hubRoutes.getOpenApi, constant(options.openApi)),
    bind(hubRoutes.listMachines, constant(options.charts)),
    bind(hubRoutes.getMetrics, async () => {
      const { contentType, text } = await options.metrics();
      return bytes(200, contentType, text);
    }),
  ];
}
