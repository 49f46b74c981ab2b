import { HttpError } from './http-error.ts';

/** Most bytes of request line and headers together (design §4). */
export const headerBytes = 16_384;

/** Header fields that decide where a request ends, unchanged: one entry for each field line. */
export interface FramingFields {
  readonly hosts: number;
  readonly lengths: readonly string[];
  readonly codings: readonly string[];
}

/** Ends of ambiguous requests differ between a proxy and this server, so they are refused, never guessed. */
const refusal = (message: string): HttpError => new HttpError(400, 'invalidRequest', message);

/**
 * The fault of a request whose end is ambiguous (RFC 9112, sections 3.2, 6.1 and 6.3), or undefined. The caller answers it and closes
 * the connection, because the next bytes may be the rest of this request.
 */
export function framingFault({ hosts, lengths, codings }: FramingFields): HttpError | undefined {
  if (hosts > 1) return refusal('The request has more than one Host header.');
  if (lengths.length > 1) return refusal('The request has more than one Content-Length header.');
  if (codings.length === 0) return lengths[0] === undefined ? undefined : lengthFault(lengths[0]);
  if (lengths.length > 0) return refusal('The request has both Content-Length and Transfer-Encoding.');
  if (codings.length === 1 && codings[0]?.toLowerCase() === 'chunked') return undefined;
  return refusal('The only Transfer-Encoding this server reads is "chunked", once.');
}

function lengthFault(length: string): HttpError | undefined {
  if (!/^\d+$/.test(length)) return refusal('Content-Length must be a number.');
  // uWebSockets.js reads nine digits. No route takes as much.
  return length.length <= 9 ? undefined : new HttpError(413, 'payloadTooLarge', 'The body is too large.');
}

/** The fault of a request whose line and headers together are too long, or undefined. */
export function sizeFault(bytes: number): HttpError | undefined {
  if (bytes <= headerBytes) return undefined;
  const details = { limit: headerBytes };
  return new HttpError(431, 'headersTooLarge', 'Request line and headers are too large.', details);
}
