/**
 * The HTTP API of the review backend: route table, handlers, event stream, OpenAPI document, server. Called by whoever
 * assembles the backend, who gives it `ReviewActions`. Never here: what a review is, SQL, a call to a forge, the webhook.
 */
export { apiError, errorBody } from './errors.ts';
export { type ObservationOptions, observationRoutes } from './observation.ts';
export { type ReviewOperation, type ReviewRoute, reviewRoutes } from './route-table.ts';
export { createReviewServer, type ReviewServer, type ReviewServerOptions } from './server.ts';
export type { BackendFacts, ReviewActions, ReviewApiOptions } from './service.ts';
export { EventFeed } from './stream.ts';
