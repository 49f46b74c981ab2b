export type BackendErrorCode =
  /** Another backend uses this state directory. */
  | 'alreadyRunning'
  | 'stateDirectoryUnusable'
  | 'settingsInvalid'
  | 'databaseUnusable'
  | 'addressInUse'
  | 'addressUnusable';

/** Failure that prevents a backend from serving. `hint` is the next step for the user. */
export class BackendError extends Error {
  override readonly name = 'BackendError';
  readonly code: BackendErrorCode;
  readonly hint: string | null;

  constructor(code: BackendErrorCode, message: string, hint: string | null, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.hint = hint;
  }
}
