export type ReviewStoreErrorCode =
  /** The cursor does not come from a page of this list. */
  | 'invalidCursor'
  /** The request contradicts the stored state. */
  | 'conflict'
  | 'notFound'
  /** Another process writes, or too many writes wait. */
  | 'databaseBusy'
  /** The connection failed. */
  | 'databaseUnavailable'
  | 'databaseFull'
  | 'databaseReadOnly'
  | 'databaseCorrupt'
  /** A newer version of Oratorio created the schema. */
  | 'databaseNewer'
  | 'databaseFailed'
  | 'invalidConnectionString'
  | 'storeClosed';

const retryable: ReadonlySet<ReviewStoreErrorCode> = new Set(['databaseBusy', 'databaseUnavailable', 'databaseFull']);

/** Failure of the database, with a code that callers can handle. Messages name files and tables, never values. */
export class ReviewStoreError extends Error {
  override readonly name = 'ReviewStoreError';
  readonly code: ReviewStoreErrorCode;

  constructor(code: ReviewStoreErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }

  /** Whether a later attempt can succeed without intervention. */
  get isRetryable(): boolean {
    return retryable.has(this.code);
  }
}

export const noItem = (itemId: string) => new ReviewStoreError('notFound', `Unknown item: ${itemId}`);
export const noRepository = (key: string) => new ReviewStoreError('notFound', `Unknown repository: ${key}`);
export const storeClosed = () => new ReviewStoreError('storeClosed', 'The review store is closed');
