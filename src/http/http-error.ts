/** A header of an answer: lower-case name, value. */
export type Header = readonly [name: string, value: string];

/**
 * An intended refusal: thrown by handlers, `auth` and body readers, answered through `ServerOptions.errorBody`.
 * Anything else that is thrown is a bug and becomes a 500 that gives the client nothing but an id.
 */
export class HttpError extends Error {
  override readonly name = 'HttpError';
  readonly status: number;
  readonly code: string;
  readonly details: unknown;
  readonly headers: readonly Header[];

  constructor(status: number, code: string, message: string, details: unknown = {}, headers: readonly Header[] = []) {
    super(message);
    this.status = status;
    this.code = code;
    this.details = details;
    this.headers = headers;
  }
}
