/** Failure of a step of a run; `reviewFailureOf` of the machine reads its fields. */
export class ReviewRunError extends Error {
  override readonly name = 'ReviewRunError';
  readonly code: 'reviewTargetMoved' | 'publishFailed' | 'draftMissing' | 'itemMissing';
  readonly isRetryable: boolean;

  constructor(code: ReviewRunError['code'], message: string, isRetryable = false) {
    super(message);
    this.code = code;
    this.isRetryable = isRetryable;
  }
}
