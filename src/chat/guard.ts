import {
  admitOwnerOrKey,
  bearerToken,
  type Guard,
  HttpError,
  isForeign,
  type RequestContext,
  sameSecret,
} from '../http/index.ts';
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
 * Admits requests below `/v1/` (specification §5). With `Api.ApiKey` every path but `/v1/health` needs it, whether the path
 * exists or not. Without one, `ownerAccess` admits this user and holders of the generated key. Pages of other origins are
 * refused with and without a key: a browser would let any of them run commands. Other paths pass.
 */
export function chatGuard({ api, ownerAccess }: Pick<ChatOptions, 'api' | 'ownerAccess'>): Guard {
  const key = api.ApiKey.trim();
  const checkKey = (request: Pick<RequestContext, 'header'>) => {
    const given = bearerToken(request.header('authorization'));
    if (given === undefined) throw unauthorized('Bearer', 'An API key is needed: Authorization: Bearer <key>.');
    if (!sameSecret(given, key)) throw unauthorized('Bearer error="invalid_token"', 'The API key is wrong.');
  };
  const checkOrigin = (request: Pick<RequestContext, 'header'>): undefined => {
    if (isForeign(request.header('host') ?? '', request.header('sec-fetch-site'), request.header('origin'))) {
      throw chatError('originNotAllowed', 'The request comes from a page of another origin.');
    }
    return undefined;
  };
  const refuse = (message: string) => unauthorized('Bearer', message);
  return (request) => {
    const { path } = request;
    if (!isChatPath(path) || path === openPath) return undefined;
    if (key !== '') checkKey(request);
    else if (ownerAccess) {
      const admission = admitOwnerOrKey(request, ownerAccess, refuse);
      if (admission) return admission.then(() => checkOrigin(request));
    }
    return checkOrigin(request);
  };
}
