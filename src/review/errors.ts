interface ErrorKind {
  readonly status: number;
  readonly when: string;
}

/** Error codes of the review backend with HTTP status and meaning. The API reference is generated from this table. */
export const reviewErrors = {
  invalidRequest: { status: 400, when: 'The query or the body is invalid.' },
  invalidCursor: { status: 400, when: 'The cursor does not come from a page of this list.' },
  invalidPayload: { status: 400, when: 'The delivery is not JSON, or lacks a field that its event requires.' },
  missingHeader: { status: 400, when: 'A header of the delivery is missing.' },
  configurationValidationFailed: { status: 400, when: 'The changed settings would be invalid.' },
  unauthorized: { status: 401, when: 'The bearer token is missing or wrong.' },
  hostNotAllowed: { status: 403, when: 'The Host header names a host that this server does not serve.' },
  originNotAllowed: { status: 403, when: 'The request comes from a page of another origin.' },
  configWritesForbidden: { status: 403, when: 'Settings cannot be changed in this deployment.' },
  configurationOfDeployment: { status: 403, when: 'The setting belongs to the deployment; `details.issues` names it.' },
  githubWritesDisabled: { status: 403, when: 'GitHub.WritesEnabled is off.' },
  invalidSignature: { status: 403, when: 'The delivery is not signed with the secret.' },
  notFound: { status: 404, when: 'The route or the resource is unknown.' },
  methodNotAllowed: { status: 405, when: 'The path does not support the method.' },
  requestTimeout: { status: 408, when: 'The body arrived too slowly.' },
  conflict: { status: 409, when: 'The request contradicts the stored state.' },
  activeRunExists: { status: 409, when: 'A review of this item is running.' },
  invalidState: { status: 409, when: 'The state of the resource does not allow this.' },
  repositoryNotRouted: { status: 409, when: 'The repository has no workspace route.' },
  draftBlocked: { status: 409, when: 'The draft is blocked; `details` contains the reason.' },
  configurationRevisionMismatch: { status: 409, when: 'The settings have changed since they were read.' },
  versionStale: { status: 412, when: 'The resource has changed since it was read.' },
  payloadTooLarge: { status: 413, when: 'The body is too large.' },
  unsupportedMediaType: { status: 415, when: 'The body is not application/json.' },
  versionRequired: { status: 428, when: 'If-Match is missing.' },
  tooManyInvalidSignatures: { status: 429, when: 'Too many deliveries with a wrong signature.' },
  headersTooLarge: { status: 431, when: 'The header block is too large.' },
  internalError: { status: 500, when: 'A bug; the log has it under `errorId`.' },
  storageUnavailable: { status: 503, when: 'The database is unavailable or full.' },
  configurationWriteFailed: { status: 503, when: 'The settings file cannot be written.' },
  sourceUnavailable: { status: 503, when: 'The source is unavailable.' },
  deadlineExceeded: { status: 503, when: 'The request took too long, or the backend is stopping.' },
  githubWebhookSecretRequired: { status: 503, when: 'This backend has no webhook secret.' },
  intakeUnavailable: { status: 503, when: 'The delivery cannot be stored.' },
} as const satisfies Record<string, ErrorKind>;
export type ReviewErrorCode = keyof typeof reviewErrors;

/** Refused request, with the code of the API response. Thrown by the parts below the API, which do not depend on HTTP. */
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
