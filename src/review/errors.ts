interface ErrorKind {
  readonly status: number;
  readonly when: string;
}

/** Every error code of the review backend, with its HTTP status and its meaning. The API reference is made from this table. */
export const reviewErrors = {
  invalidRequest: { status: 400, when: 'Query or body is not what this route takes.' },
  invalidCursor: { status: 400, when: 'The cursor is none that a page of this list has given out.' },
  invalidPayload: { status: 400, when: 'The delivery is not JSON, or has not what its event must have.' },
  missingHeader: { status: 400, when: 'The delivery does not say what it is.' },
  configurationValidationFailed: { status: 400, when: 'The settings would not be valid.' },
  unauthorized: { status: 401, when: 'The bearer token is missing or wrong.' },
  hostNotAllowed: { status: 403, when: 'The Host header names a host this server does not serve.' },
  originNotAllowed: { status: 403, when: 'The request comes from a page of another origin.' },
  configWritesForbidden: { status: 403, when: 'Settings cannot be changed in this deployment.' },
  configurationOfDeployment: { status: 403, when: 'The setting belongs to the deployment; `details.issues` names it.' },
  githubWritesDisabled: { status: 403, when: 'GitHub.WritesEnabled is off.' },
  invalidSignature: { status: 403, when: 'The delivery is not signed with the secret.' },
  notFound: { status: 404, when: 'There is no such route or thing.' },
  methodNotAllowed: { status: 405, when: 'The path has no such method.' },
  requestTimeout: { status: 408, when: 'The body came too slowly.' },
  conflict: { status: 409, when: 'It does not go together with what is there.' },
  activeRunExists: { status: 409, when: 'A review of this item is under way.' },
  invalidState: { status: 409, when: 'It is in a state in which this cannot be done.' },
  repositoryNotRouted: { status: 409, when: 'No workspace route leads to the repository.' },
  draftBlocked: { status: 409, when: 'The draft cannot be published as it is; `details` says why.' },
  configurationRevisionMismatch: { status: 409, when: 'The settings are not those that were looked at.' },
  versionStale: { status: 412, when: 'It has changed since it was read.' },
  payloadTooLarge: { status: 413, when: 'The body is too large.' },
  unsupportedMediaType: { status: 415, when: 'The body is not application/json.' },
  versionRequired: { status: 428, when: 'If-Match must say which version was looked at.' },
  tooManyInvalidSignatures: { status: 429, when: 'Too many deliveries with a wrong signature.' },
  headersTooLarge: { status: 431, when: 'The header block is too large.' },
  internalError: { status: 500, when: 'A bug; the log has it under `errorId`.' },
  storageUnavailable: { status: 503, when: 'The database cannot be reached or cannot take more.' },
  configurationWriteFailed: { status: 503, when: 'The settings file cannot be written.' },
  sourceUnavailable: { status: 503, when: 'The forge cannot be asked at the moment.' },
  deadlineExceeded: { status: 503, when: 'It took too long, or the backend is stopping.' },
  githubWebhookSecretRequired: { status: 503, when: 'This backend has no webhook secret.' },
  intakeUnavailable: { status: 503, when: 'The delivery cannot be kept at the moment.' },
} as const satisfies Record<string, ErrorKind>;
export type ReviewErrorCode = keyof typeof reviewErrors;

/** A refused request, with the code the API answers with. Thrown by the parts below the API, which know no HTTP. */
export class ReviewError extends Error {
  override readonly name = 'ReviewError';
  readonly code: ReviewErrorCode;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(code: ReviewErrorCode, message: string, details: Readonly<Record<string, unknown>> = {}) {
    super(message);
    this.code = code;
    this.details = details;
  }
}
