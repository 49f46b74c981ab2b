import { type Guard, type Header, HttpError, isForeign, securityHeaders } from '../http/index.ts';

/**
 * Paths of the page itself: it holds neither data nor a token, and a link to it may be anywhere. Everything else, known or not,
 * is refused to pages of others before it is looked at: a list of what is dangerous would be wrong some day.
 */
const isPage = (path: string): boolean => path === '/' || /^\/dashboard\/?$/i.test(path);
const isAsset = (path: string): boolean => path.startsWith('/assets/');

/**
 * Refuses what a page of another origin sends, another port of this machine included, whatever the method (reference P3).
 * Browsers say it in `Sec-Fetch-Site`, which a page cannot forge, or in `Origin`. Other clients send neither.
 */
export const dashboardGuard: Guard = (request) => {
  if (isPage(request.path) || isAsset(request.path)) return;
  const site = request.header('sec-fetch-site');
  const isTyped = site === 'none';
  const host = request.header('host') ?? '';
  const origin = request.header('origin');
  // Both, where both are there: an Origin that is not ours is not made better by what stands beside it.
  if (isTyped || isForeign(host, site, origin) || isForeign(host, undefined, origin)) {
    throw new HttpError(403, 'originNotAllowed', 'The request comes from a page of another origin.', null);
  }
};

const apiHeaders: readonly Header[] = [...securityHeaders, ['cache-control', 'no-store']];

/** Headers of every answer of the dashboard (reference P10). What is data is kept by nobody. */
export const dashboardHeaders = (path: string | undefined): readonly Header[] =>
  path !== undefined && isAsset(path) ? securityHeaders : apiHeaders;
