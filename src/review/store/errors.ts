export type ReviewStoreErrorCode =
  /** A cursor that no page has given out. */
  | 'invalidCursor'
  /** What was asked for does not go together with what is there. */
  | 'conflict'
  | 'notFound'
  /** Others write, or too many wait. */
  | 'databaseBusy'
  /** It cannot be reached. */
  | 'databaseUnavailable'
  | 'databaseFull'
  | 'databaseReadOnly'
  | 'databaseCorrupt'
  /** A newer version of Oratorio made it. */
  | 'databaseNewer'
  | 'databaseFailed'
  | 'invalidConnectionString'
  | 'storeClosed';

const retryable: ReadonlySet<ReviewStoreErrorCode> = new Set(['databaseBusy', 'databaseUnavailable', 'databaseFull']);

/** What went wrong with the database, in terms a caller can act upon. Names files and tables, never values. */
export class ReviewStoreError extends Error {
  override readonly name = 'ReviewStoreError';
  readonly code: ReviewStoreErrorCode;

  constructor(code: ReviewStoreErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }

  /** Whether it may pass by itself. */
  get isRetryable(): boolean {
    return retryable.has(this.code);
  }
}

export const noItem = (itemId: string) => new ReviewStoreError('notFound', `There is no item ${itemId}`);
export const noRepository = (key: string) => new ReviewStoreError('notFound', `There is no repository ${key}`);
export const storeClosed = () => new ReviewStoreError('storeClosed', 'The store was closed');
