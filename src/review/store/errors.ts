export type ReviewStoreErrorCode =
  /** The cursor does not come from a page of this list. */
  | 'invalidCursor'
  /** The request contradicts the stored state. */
  | 'conflict'
  | 'notFound'
  /** Another process writes, or too many writes wait. */
  | 'databaseBusy'
  /** The connection failed, or could not be made. */
  | 'databaseUnavailable'
  | 'databaseFull'
  /** The server or the file accepts no writes, e.g. a standby. */
  | 'databaseReadOnly'
  | 'databaseCorrupt'
  /** A newer version of Oratorio created the schema. */
  | 'databaseNewer'
  /** The database cannot hold the data, e.g. because of its encoding. */
  | 'databaseUnsuited'
  /** An error without a code of its own. */
  | 'databaseFailed'
  | 'invalidConnectionString'
  | 'storeClosed';

/** Failures of the database that end when it serves again. Work waits for that and uses up no attempt. */
const outages: ReadonlySet<ReviewStoreErrorCode> = new Set([
  'databaseBusy',
  'databaseUnavailable',
  'databaseFull',
  'databaseReadOnly',
]);

interface StoreErrorOptions extends ErrorOptions {
  /** Next step for the operator. */
  readonly hint?: string | undefined;
}

/** Failure of the database, with a code that callers can handle. Messages name files and tables, never values. */
export class ReviewStoreError extends Error {
  override readonly name = 'ReviewStoreError';
  readonly code: ReviewStoreErrorCode;
  readonly hint: string | undefined;

  constructor(code: ReviewStoreErrorCode, message: string, { hint, ...options }: StoreErrorOptions = {}) {
    super(message, options);
    this.code = code;
    this.hint = hint;
  }

  /** Whether the database cannot serve at present. */
  get isOutage(): boolean {
    return outages.has(this.code);
  }

  /** Whether a later attempt can succeed without intervention. An unknown failure may pass, too. */
  get isRetryable(): boolean {
    return this.isOutage || this.code === 'databaseFailed';
  }
}

/** Whether work failed because the database cannot serve at present. The store logs the outage itself. */
export const isOutage = (error: unknown): boolean => error instanceof ReviewStoreError && error.isOutage;

/** Level for the failure of work that is repeated: the store already logs an outage of the database. */
export const retryLevel = (error: unknown): 'debug' | 'warn' => (isOutage(error) ? 'debug' : 'warn');

export const noItem = (itemId: string) => new ReviewStoreError('notFound', `Unknown item: ${itemId}`);
export const noRepository = (key: string) => new ReviewStoreError('notFound', `Unknown repository: ${key}`);
export const storeClosed = () => new ReviewStoreError('storeClosed', 'The review store is closed');
