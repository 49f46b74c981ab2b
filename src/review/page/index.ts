/**
 * The page of the review backend: the same bundle that the Hub and agent servers serve, under a path by which it knows its
 * server. Called by the assembly of the backend. Never here: data, a token, a route of the API.
 */
import { type AnyRoute, empty, type Handler, HttpError } from '../../http/index.ts';
import { pageFiles } from '../../inspect/index.ts';

/** Path of the page, by which the page knows that it belongs to the review backend. */
export const reviewPagePath = '/review';

export interface ReviewPageOptions {
  /** Directory of a built page; absent: the one of this build. */
  readonly directory?: string;
}

/**
 * Routes of the page and its files, open to everybody: they hold no data and no token. `/` redirects to the page; a browser
 * takes the fragment with the token along.
 *
 * @throws HttpError 503 `pageNotBuilt` at a request, in a checkout that has not been built
 */
export function reviewPageRoutes(options: ReviewPageOptions = {}): AnyRoute[] {
  const files = pageFiles(options.directory);
  const serve =
    (pathOf: (params: Readonly<Record<string, string>>) => string): Handler =>
    (context) => {
      const known = files();
      const handler = known.get(pathOf(context.params));
      if (handler) return handler(context);
      if (known.size > 0) throw new HttpError(404, 'notFound', 'There is no such file.', null);
      throw new HttpError(
        503,
        'pageNotBuilt',
        'The page has not been built: run "npm run build" in the checkout.',
        null,
      );
    };
  const redirect: Handler = () => empty(302, [['location', reviewPagePath]]);
  return [
    { method: 'GET', path: reviewPagePath, handler: serve(() => '/index.html') },
    { method: 'GET', path: `${reviewPagePath}/`, handler: redirect },
    { method: 'GET', path: '/', handler: redirect },
    { method: 'GET', path: '/assets/*', handler: serve((params) => `/assets/${params['*'] ?? ''}`) },
  ];
}
