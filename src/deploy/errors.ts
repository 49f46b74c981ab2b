/** Error codes of a stack, each with its class of exit code. One table. */
export const deployErrors = {
  invalidInput: 'usage',
  hostRefused: 'usage',
  secretRefused: 'usage',
  notAStack: 'usage',
  foreignDirectory: 'precondition',
  editedFile: 'precondition',
  foreignFile: 'precondition',
  unsupportedPlatform: 'precondition',
  engineMissing: 'precondition',
  engineUnreachable: 'precondition',
  composeMissing: 'precondition',
  gitMissing: 'precondition',
  portTaken: 'precondition',
  stackLocked: 'precondition',
  unfinishedChange: 'precondition',
  diskFull: 'failure',
  fileFailed: 'failure',
  cloneFailed: 'failure',
  imageFailed: 'failure',
  compositionInvalid: 'failure',
  gatewayInvalid: 'failure',
  startFailed: 'failure',
  engineFailed: 'failure',
  cancelled: 'interrupted',
  credentialsRefused: 'credentials',
  unhealthy: 'unhealthy',
  undoFailed: 'unhealthy',
} as const satisfies Record<string, 'usage' | 'precondition' | 'failure' | 'credentials' | 'unhealthy' | 'interrupted'>;

export type DeployErrorCode = keyof typeof deployErrors;

/** A problem of a stack for a person: the finding and the next step. Never contains a secret. */
export class DeployError extends Error {
  override readonly name = 'DeployError';
  readonly code: DeployErrorCode;
  readonly hint: string | null;

  constructor(code: DeployErrorCode, message: string, hint: string | null = null, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.hint = hint;
  }
}
