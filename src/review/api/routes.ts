import {
  type AnyRoute,
  type Authenticate,
  bearer,
  createProver,
  HttpError,
  keyIdOf,
  type ProvableToken,
  type Reply,
} from '../../http/index.ts';
import { ReviewError, type ReviewErrorCode, reviewErrors } from '../errors.ts';
import { ReviewStoreError, type ReviewStoreErrorCode } from '../store/index.ts';
import { draftHandlers } from './drafts.ts';
import { apiError } from './errors.ts';
import { itemHandlers } from './items.ts';
import { limits } from './limits.ts';
import { type ReviewOperation, type ReviewRoute, reviewRoutes } from './route-table.ts';
import type { ApiHandler, ReviewApiOptions } from './service.ts';
import { sourceHandlers } from './sources.ts';
import type { EventFeed } from './stream.ts';
import { systemHandlers } from './system.ts';

/** Routes for observing a process, with handlers in `observation.ts`. */
export type ObservedOperation = Extract<ReviewOperation, 'streamInspection' | 'listMachines' | 'getMetrics'>;
/** Routes with handlers in `webhook` and `observation.ts`. */
type Elsewhere = 'takeWebhook' | ObservedOperation;

/** Routes of the table with their handlers, except for the webhook and the observation of the process. */
export function apiRoutes(options: ReviewApiOptions, feed: EventFeed): AnyRoute[] {
  const auth = bearer(options.token);
  const handlers: Readonly<Record<Exclude<ReviewOperation, Elsewhere>, ApiHandler>> = {
    ...itemHandlers(options),
    ...draftHandlers(options),
    ...sourceHandlers(options),
    ...systemHandlers(options),
    prove: createProver({ role: 'backend', find: (key) => named(options.token(), key), isOwn: options.isOwn }).handler,
    streamEvents: (context) => feed.reply(context),
  };
  return Object.entries(handlers).map(([operation, handler]) =>
    bound(reviewRoutes[operation as ReviewOperation], auth, handler),
  );
}

/** The service token, if the key id matches it. */
const named = (token: string, key: string): ProvableToken | undefined =>
  keyIdOf(token) === key ? { token, use: 'token' } : undefined;

/** Health routes, the only ones of a process with the role `worker`. */
export function healthRoutes(options: ReviewApiOptions): AnyRoute[] {
  const { getHealth, getLiveness } = systemHandlers(options);
  return [bound(reviewRoutes.getHealth, undefined, getHealth), bound(reviewRoutes.getLiveness, undefined, getLiveness)];
}

/** Binds a route of the table to its handler. */
export function bound(route: ReviewRoute, auth: Authenticate<unknown> | undefined, handler: ApiHandler): AnyRoute {
  const isStream = route.response.kind === 'events' || route.response.kind === 'inspection';
  return {
    method: route.method,
    path: route.path,
    bodyLimit: limits.bodyBytes,
    deadlineMs: isStream ? 0 : limits.deadlineMs,
    ...(route.auth === 'token' && auth && { auth }),
    handler: answered(handler),
  };
}

/** Store errors that a client can handle; any other becomes `storageUnavailable`. */
const ofStore: Partial<Record<ReviewStoreErrorCode, ReviewErrorCode>> = {
  invalidCursor: 'invalidCursor',
  conflict: 'conflict',
  notFound: 'notFound',
};

/** Converts ReviewError and ReviewStoreError to HTTP errors; any other error is a bug. */
function answered(handler: ApiHandler): ApiHandler {
  return (context) => {
    try {
      const reply = handler(context);
      return reply instanceof Promise ? reply.catch(explain) : reply;
    } catch (error) {
      return explain(error);
    }
  };
}

function explain(error: unknown): Reply {
  if (error instanceof ReviewError)
    throw new HttpError(reviewErrors[error.code].status, error.code, error.message, error.details);
  if (error instanceof ReviewStoreError) {
    const code = ofStore[error.code];
    throw code ? apiError(code, error.message) : apiError('storageUnavailable', error.message, { code: error.code });
  }
  throw error;
}
