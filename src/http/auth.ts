import { hash, timingSafeEqual } from 'node:crypto';
import { HttpError } from './http-error.ts';
import type { Authenticate, LateAuthenticate, RequestContext } from './types.ts';

const digest = (value: string): Buffer => hash('sha256', value, 'buffer');

function unauthorized(challenge: string): HttpError {
  return new HttpError(401, 'unauthorized', 'The bearer token is missing or wrong.', {}, [
    ['www-authenticate', challenge],
  ]);
}

/** Compares in a time that reveals neither the place of a difference nor the length of the expected text. */
export function sameSecret(given: string, expected: string): boolean {
  return timingSafeEqual(digest(given), digest(expected));
}

/** The token of `Authorization: Bearer <token>` (RFC 6750, section 2.1; the scheme in any case, RFC 9110, section 11.1), or undefined. */
export function bearerToken(header: string | undefined): string | undefined {
  if (header === undefined || header.length < 8 || header.slice(0, 7).toLowerCase() !== 'bearer ') return undefined;
  return header.slice(7).trim();
}

/**
 * Makes a test for one secret; a getter allows rotation. Compares in constant time among secrets of one length: how long our
 * tokens are is public, and hashing both sides would cost more than the rest of a small request.
 */
export function secretTest(secret: string | (() => string)): (given: string) => boolean {
  let known = '';
  let knownBytes = Buffer.alloc(0);
  return (given) => {
    const expected = typeof secret === 'string' ? secret : secret();
    if (expected !== known) {
      known = expected;
      knownBytes = Buffer.from(expected);
    }
    const bytes = Buffer.from(given);
    return expected !== '' && bytes.byteLength === knownBytes.byteLength && timingSafeEqual(bytes, knownBytes);
  };
}

/** Requires `Authorization: Bearer <token>`; anything else is 401 with a challenge (RFC 6750, section 3). A getter allows rotation. */
export function bearer(token: string | (() => string)): Authenticate<undefined> {
  const isToken = secretTest(token);
  return (request) => {
    const given = bearerToken(request.header('authorization'));
    if (given === undefined) throw unauthorized('Bearer');
    if (!isToken(given)) throw unauthorized('Bearer error="invalid_token"');
    return undefined;
  };
}

/** Access to a listener for which no key is configured. */
export interface OwnerAccess {
  /** The generated key, for other users of this machine; undefined when none could be saved: they are refused then. */
  readonly key: string | undefined;
  /** File of the key, which a refusal names. */
  readonly keyFile: string;
}

type OwnersRequest = Pick<RequestContext, 'header' | 'peerUid'>;

/**
 * Admits a request without a configured key: it carries the generated key, or it comes from a process of this user over a
 * loopback connection. The kernel is asked only when the key is missing or wrong: clients that cannot leave the header out send
 * any word. Throws, or rejects with, the error of `refuse` in every other case; the caller must wait for the promise.
 */
export function admitOwnerOrKey(
  request: OwnersRequest,
  access: OwnerAccess,
  refuse: (message: string) => HttpError,
): undefined | Promise<undefined> {
  const given = bearerToken(request.header('authorization'));
  if (given !== undefined && access.key !== undefined && sameSecret(given, access.key)) return undefined;
  const judge = (uid: unknown): undefined => {
    if (typeof uid !== 'number' || uid !== process.getuid?.()) throw refuse(ownerOnlyMessage(access));
    return undefined;
  };
  const uid = request.peerUid;
  if (uid === 'busy') throw tooManyPeers();
  return uid instanceof Promise ? uid.then(judge) : judge(uid);
}

function tooManyPeers(): HttpError {
  const message = 'Too many connections without a key wait to be identified. Repeat the request, or send the key.';
  return new HttpError(503, 'deadlineExceeded', message, {}, [['retry-after', '1']]);
}

/** Text of the 401 for a request that `admitOwnerOrKey` does not admit. */
function ownerOnlyMessage({ key, keyFile }: OwnerAccess): string {
  const what = 'No key is configured, so only the user who runs this server is served without one.';
  return key === undefined
    ? `${what} Ask that user to set a key.`
    : `${what} Send Authorization: Bearer <key>; the key is in ${keyFile}.`;
}

/** Requires the generated key of every request that does not come from this user; anything else is 401 with a challenge. */
export function ownerOrKey(access: OwnerAccess): LateAuthenticate<undefined> {
  const refuse = (message: string) => new HttpError(401, 'unauthorized', message, {}, [['www-authenticate', 'Bearer']]);
  return (request) => admitOwnerOrKey(request, access, refuse);
}
