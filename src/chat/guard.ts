import { bearerToken, type Guard, HttpError, isForeign, sameSecret } from '../http/index.ts';
import { chatError } from './errors.ts';
import type { ChatOptions } from './options.ts';

/** Paths that this API answers for, unknown ones included. */
export const isChatPath = (path: string | undefined): boolean => path === '/v1' || path?.startsWith('/v1/') === true;

const openPath = '/v1/health';

function unauthorized(challenge: string, message: string): HttpError {
  const { status, code, details } = chatError('unauthorized', message);
  return new HttpError(status, code, message, details, [['www-authenticate', challenge]]);
}

/**
 * Who may ask below `/v1/` (specification §5): with a key set everybody needs it for everything but `/v1/health`, whether the
 * path exists or not. Pages of other origins are refused with and without a key: a browser would let any of them run commands.
 * Other paths are none of its business.
 */
export function chatGuard({ api }: Pick<ChatOptions, 'api'>): Guard {
  const key = api.ApiKey.trim();
  return (request) => {
    const { path } = request;
    if (!isChatPath(path) || path === openPath) return;
    if (key !== '') {
      const given = bearerToken(request.header('authorization'));
      if (given === undefined) throw unauthorized('Bearer', 'An API key is needed: Authorization: Bearer <key>.');
      if (!sameSecret(given, key)) throw unauthorized('Bearer error="invalid_token"', 'The API key is wrong.');
    }
    if (isForeign(request.header('host') ?? '', request.header('sec-fetch-site'), request.header('origin'))) {
      throw chatError('originNotAllowed', 'The request comes from a page of another origin.');
    }
  };
}
