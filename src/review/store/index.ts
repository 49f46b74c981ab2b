/**
 * Where the review backend keeps everything: SQLite (`backend.db` in the state directory) or PostgreSQL, by the same queries.
 * Called by whoever assembles the backend, and through `ReviewStore` by all its parts. Never here: what a review is, when one
 * is due, anything of a forge; no caller of this sees SQL, a connection or a transaction.
 */
export { ReviewStoreError, type ReviewStoreErrorCode } from './errors.ts';
export { openReviewStore, type ReviewStoreOptions } from './open.ts';
export * from './types.ts';
