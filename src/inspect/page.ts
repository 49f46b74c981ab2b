import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type AnyRoute, type Handler, HttpError, staticFiles } from '../http/index.ts';
import { packageRoot } from '../lib/index.ts';

/** Routes of the page that shows actors live, as the build made it. A checkout that has not been built has none. */
export function pageRoutes(onMissing: (directory: string) => void): AnyRoute[] {
  const directory = join(packageRoot(), 'dist', 'ui');
  if (existsSync(directory)) return staticFiles(directory);
  onMissing(directory);
  return [];
}

/**
 * The same routes for a server that has the page at `/`. The files are read and hashed at the first request for one of them, which
 * takes a fifteenth of the processor time of a Hub's start.
 */
export function lazyPageRoutes(onMissing: (directory: string) => void): AnyRoute[] {
  const directory = join(packageRoot(), 'dist', 'ui');
  if (!existsSync(directory)) return pageRoutes(onMissing);
  let files: ReadonlyMap<string, Handler> | undefined;
  const serve = (path: string, context: Parameters<Handler>[0]) => {
    files ??= new Map(pageRoutes(onMissing).map(({ path: at, handler }) => [at, handler as Handler]));
    const handler = files.get(path);
    if (handler === undefined) throw new HttpError(404, 'notFound', 'There is no such route.');
    return handler(context);
  };
  const entries = readdirSync(directory, { withFileTypes: true });
  const paths = ['/', ...entries.filter((entry) => entry.isFile()).map(({ name }) => `/${encodeURIComponent(name)}`)];
  return [
    ...paths.map((path): AnyRoute => ({ method: 'GET', path, handler: (context) => serve(path, context) })),
    ...entries
      .filter((entry) => entry.isDirectory())
      .map(({ name }): AnyRoute => {
        const above = `/${encodeURIComponent(name)}/`;
        return {
          method: 'GET',
          path: `${above}*`,
          handler: (context) => serve(`${above}${context.params['*'] ?? ''}`, context),
        };
      }),
  ];
}
