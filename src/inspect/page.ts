import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type AnyRoute, staticFiles } from '../http/index.ts';
import { packageRoot } from '../lib/index.ts';

/** Routes of the page that shows actors live, as the build made it. A checkout that has not been built has none. */
export function pageRoutes(onMissing: (directory: string) => void): AnyRoute[] {
  const directory = join(packageRoot(), 'dist', 'ui');
  if (existsSync(directory)) return staticFiles(directory);
  onMissing(directory);
  return [];
}
