import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type AnyRoute, type Handler, HttpError, staticFiles } from '../http/index.ts';
import { packageRoot } from '../lib/index.ts';
import { missingRoute } from '../protocol/index.ts';

const builtPage = (): string => join(packageRoot(), 'dist', 'ui');

/**
 * Files of the built page by path, read and hashed at the first call: the start of a server does not wait for them. Empty without a
 * built page; one that is built meanwhile is read at a later call.
 *
 * @param directory of the page; default: the one of the build
 */
export function pageFiles(directory = builtPage()): () => ReadonlyMap<string, Handler> {
  let files: ReadonlyMap<string, Handler> | undefined;
  return () => {
    if (files) return files;
    const routes = existsSync(directory) ? staticFiles(directory) : [];
    const read = new Map(routes.map(({ path, handler }) => [path, handler as Handler]));
    if (read.size > 0) files = read;
    return read;
  };
}

/**
 * Routes of the page that shows actors live, as the build made it, for a server that has it at `/`. A checkout that has not been
 * built has none.
 */
export function pageRoutes(onMissing: (directory: string) => void): AnyRoute[] {
  const directory = builtPage();
  if (!existsSync(directory)) {
    onMissing(directory);
    return [];
  }
  const files = pageFiles();
  const serve = (path: string, context: Parameters<Handler>[0]) => {
    const handler = files().get(path);
    if (handler === undefined) throw new HttpError(404, 'notFound', missingRoute);
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
