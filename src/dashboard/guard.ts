import { type Guard, type Header, HttpError, isForeign, securityHeaders } from '../http/index.ts';

/**
 * Paths of the page itself: it holds neither data nor a token, and a link to it may be anywhere. Everything else, known or not,
 * is refused to pages of other origins before it is routed: a list of dangerous paths would be wrong some day.
 */
const isPage = (path: string): boolean => path === '/' || /^\/dashboard\/?$/i.test(path);
const isAsset = (path: string): boolean => path.startsWith('/assets/');

/**
 * Refuses requests of a page of another origin, another port of this machine included, for every method. Browsers name the
 * origin in `Sec-Fetch-Site`, which a page cannot forge, or in `Origin`. Other clients send neither.
 */
export const dashboardGuard: Guard = (request) => {
  if (isPage(request.path) || isAsset(request.path)) return;
  const site = request.header('sec-fetch-site');
  const isTyped = site === 'none';
  const host = request.header('host') ?? '';
  const origin = request.header('origin');
  // Both are checked if both are present: no other header makes up for a foreign Origin.
  if (isTyped || isForeign(host, site, origin) || isForeign(host, undefined, origin)) {
    throw new HttpError(403, 'originNotAllowed', 'The request comes from a page of another origin.', null);
  }
};

const apiHeaders: readonly Header[] = [...securityHeaders, ['cache-control', 'no-store']];

/** Headers of every answer of the dashboard. Data is not cached. */
export const dashboardHeaders = (path: string | undefined): readonly Header[] =>
  path !== undefined && isAsset(path) ? securityHeaders : apiHeaders;
