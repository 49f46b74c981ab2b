/** Something on the web could not be had. The message is a sentence for the model and holds no secret. */
export class WebError extends Error {
  override readonly name = 'WebError';
  /** The request was not sent, because it is forbidden. */
  readonly isRefusal: boolean;

  constructor(message: string, { isRefusal = false, cause }: { isRefusal?: boolean; cause?: unknown } = {}) {
    super(message, { cause });
    this.isRefusal = isRefusal;
  }
}

/** Error for an address that must not be fetched. */
export const refusal = (message: string): WebError => new WebError(message, { isRefusal: true });
