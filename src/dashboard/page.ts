import { type AnyRoute, empty, type Handler, HttpError } from '../http/index.ts';
import { pageRoutes } from '../inspect/index.ts';
import { dashboardPaths } from '../protocol/index.ts';

const redirect: Handler = () => empty(302, [['location', dashboardPaths.page]]);

/** Files of the page by path, read at the first request: the start of the server does not wait for them. */
function pageFiles(): (path: string) => Handler | undefined {
  let files: Map<string, Handler> | undefined;
  return (path) => {
    const read = files ?? new Map(pageRoutes(() => undefined).map(({ path: at, handler }) => [at, handler as Handler]));
    // A page that has not been built yet may be built meanwhile.
    if (read.size > 0) files = read;
    return read.get(path);
  };
}

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
      const handler = files(pathOf(context.params));
      if (handler) return handler(context);
      throw files('/index.html') ? new HttpError(404, 'notFound', 'There is no such file.', null) : missing();
    };
  return [
    { method: 'GET', path: dashboardPaths.page, handler: serve(() => '/index.html') },
    { method: 'GET', path: '/dashboard', ignoreCase: true, handler: redirect },
    { method: 'GET', path: '/dashboard/', ignoreCase: true, handler: redirect },
    { method: 'GET', path: '/assets/*', handler: serve((params) => `/assets/${params['*'] ?? ''}`) },
    ...(ownsListener ? [{ method: 'GET', path: '/', handler: redirect } as const] : []),
  ];
}
