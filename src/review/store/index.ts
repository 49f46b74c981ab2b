/**
 * Stores the state of the review backend in SQLite (`backend.db` in the state directory) or PostgreSQL, with the same queries.
 * `backend` opens it; all parts use it through `ReviewStore`, which hides SQL, connections and transactions. Rules about reviews and
 * calls to a source belong to other parts.
 */
export { isOutage, ReviewStoreError, type ReviewStoreErrorCode, retryLevel } from './errors.ts';
export { openReviewStore, type ReviewStoreOptions } from './open.ts';
export * from './types.ts';
