export type BackendErrorCode =
  /** Another backend works on this state directory. */
  | 'alreadyRunning'
  | 'stateDirectoryUnusable'
  | 'settingsInvalid'
  | 'databaseUnusable'
  | 'addressInUse'
  | 'addressUnusable';

/** Why a backend cannot serve, and what to do. */
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
