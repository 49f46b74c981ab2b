import { existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Directory of our package.json, from the sources and from a bundle alike. */
export function packageRoot(): string {
  let directory = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(directory, 'package.json'))) {
    const above = dirname(directory);
    if (above === directory) throw new Error('The package root was not found above this module.');
    directory = above;
  }
  return directory;
}

/**
 * Package directory by a path that stays valid after an update. `install.sh` installs each version in its own directory, so this is
 * the link `current` beside them.
 */
export function stablePackageRoot(root = packageRoot()): string {
  const versions = dirname(root);
  const current = join(dirname(versions), 'current');
  return basename(versions) === 'versions' && existsSync(join(current, 'package.json')) ? current : root;
}
