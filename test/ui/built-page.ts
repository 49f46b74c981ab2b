import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isBuilt } from '../../scripts/stamp.mjs';

const shipped = fileURLToPath(new URL('../../dist/ui', import.meta.url));

let isCurrent: boolean | undefined;

/** Whether `dist/` has the page of these sources; found once, because each search hashes them, a twentieth of a second. */
export function hasBuiltPage(): boolean {
  isCurrent ??= isBuilt() && existsSync(join(shipped, 'index.html'));
  return isCurrent;
}

/**
 * The built page: the one that users get when `dist/` is of these sources, which holds within `npm test`; else it is built into
 * `directory`, which takes seconds. A directory that has other files loses none of them.
 * @returns where it is; not to be written to
 */
export async function builtPage(directory: string): Promise<string> {
  if (hasBuiltPage()) return shipped;
  const { build } = await import('vite');
  await build({
    configFile: 'src/ui/vite.config.ts',
    logLevel: 'error',
    build: { outDir: directory, emptyOutDir: false },
  });
  return directory;
}
