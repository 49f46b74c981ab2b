/**
 * HTTP API of the review backend: route table, handlers, event stream, OpenAPI document, server. `backend` creates it with
 * `ReviewActions`. Rules about reviews, SQL, calls to a source and the webhook belong to other parts.
 */
export { apiError, errorBody } from './errors.ts';
export { type ObservationOptions, observationRoutes } from './observation.ts';
export { type ReviewOperation, type ReviewRoute, reviewRoutes } from './route-table.ts';
export { createReviewServer, type ReviewServer, type ReviewServerOptions } from './server.ts';
export type { BackendFacts, ReviewActions, ReviewApiOptions } from './service.ts';
export { EventFeed } from './stream.ts';
