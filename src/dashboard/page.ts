import { type AnyRoute, empty, type Handler, HttpError } from '../http/index.ts';
import { pageFiles } from '../inspect/index.ts';
import { dashboardPaths } from '../protocol/index.ts';

const redirect: Handler = () => empty(302, [['location', dashboardPaths.page]]);

/**
 * The page, its files, and the other ways to spell its address. Open to everybody: there is no data in it and no token.
 *
 * @param ownsListener nothing else is served at this address, so `/` leads to the page too
 */
export function pageAndAssets(ownsListener: boolean): AnyRoute[] {
  const files = pageFiles();
  const missing = () =>
    new HttpError(503, 'pageNotBuilt', 'The page has not been built: run "npm run build" in the checkout.', null);
  const serve =
    (pathOf: (params: Readonly<Record<string, string>>) => string): Handler =>
    (context) => {
      const handler = files().get(pathOf(context.params));
      if (handler) return handler(context);
      throw files().size > 0 ? new HttpError(404, 'notFound', 'There is no such file.', null) : missing();
    };
  return [
    { method: 'GET', path: dashboardPaths.page, handler: serve(() => '/index.html') },
    { method: 'GET', path: '/dashboard', ignoreCase: true, handler: redirect },
    { method: 'GET', path: '/dashboard/', ignoreCase: true, handler: redirect },
    { method: 'GET', path: '/assets/*', handler: serve((params) => `/assets/${params['*'] ?? ''}`) },
    ...(ownsListener ? [{ method: 'GET', path: '/', handler: redirect } as const] : []),
  ];
}
