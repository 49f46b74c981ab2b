/** Reason why GitHub gave no usable answer, or why the key of the App cannot be used. */
export type GitHubErrorCode =
  | 'privateKeyMissing'
  | 'privateKeyInvalid'
  | 'privateKeyTooShort'
  | 'timedOut'
  | 'connectionFailed'
  /** The response does not match GitHub's description. */
  | 'invalidAnswer';

/** Failure below the requests of a room. The message contains no part of a key, and nothing of a request. */
export class GitHubError extends Error {
  override readonly name = 'GitHubError';
  readonly code: GitHubErrorCode;

  constructor(code: GitHubErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}
