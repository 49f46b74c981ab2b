import { createHash, timingSafeEqual } from 'node:crypto';
import { HttpError } from './http-error.ts';
import type { Authenticate } from './types.ts';

const digest = (value: string): Buffer => createHash('sha256').update(value).digest();

function unauthorized(challenge: string): HttpError {
  return new HttpError(401, 'unauthorized', 'The bearer token is missing or wrong.', {}, [
    ['www-authenticate', challenge],
  ]);
}

/** Equal or not, in a time that tells nothing about where they differ nor how long the expected one is. */
export function sameSecret(given: string, expected: string): boolean {
  return timingSafeEqual(digest(given), digest(expected));
}

/** The token of `Authorization: Bearer <token>` (RFC 6750 §2.1; the scheme in any case, RFC 9110 §11.1), or undefined. */
export function bearerToken(header: string | undefined): string | undefined {
  if (header === undefined || header.length < 8 || header.slice(0, 7).toLowerCase() !== 'bearer ') return undefined;
  return header.slice(7).trim();
}

/**
 * Requires `Authorization: Bearer <token>`; anything else is 401 with a challenge (RFC 6750 §3). A getter allows rotation.
 * Compares in constant time among tokens of one length: how long our tokens are is no secret, and hashing both sides
 * would cost more than the rest of a small request.
 */
export function bearer(token: string | (() => string)): Authenticate<undefined> {
  let known = '';
  let knownBytes = Buffer.alloc(0);
  return (request) => {
    const expected = typeof token === 'string' ? token : token();
    if (expected !== known) {
      known = expected;
      knownBytes = Buffer.from(expected);
    }
    const given = bearerToken(request.header('authorization'));
    if (given === undefined) throw unauthorized('Bearer');
    const bytes = Buffer.from(given);
    if (expected === '' || bytes.byteLength !== knownBytes.byteLength || !timingSafeEqual(bytes, knownBytes)) {
      throw unauthorized('Bearer error="invalid_token"');
    }
    return undefined;
  };
}
