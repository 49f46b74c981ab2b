/** Gives npm a lock with addresses. Plain JavaScript without dependencies: it runs before anything is installed. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A host that no registry has: npm puts its own registry in its place. */
const anyRegistry = 'https://registry.invalid';

/** Has npm replace any host of an address in a lock. */
export const replacesHost = '--replace-registry-host=always';

/** Lock in which each package has the address of its tarball below its registry. Checksums do not change. */
export function withAddresses(lock) {
  const packages = Object.entries(lock.packages).map(([path, locked]) => {
    if (path === '' || locked.link || locked.resolved || locked.version === undefined) return [path, locked];
    const name = locked.name ?? path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
    const file = `${name.slice(name.indexOf('/') + 1)}-${locked.version}.tgz`;
    return [path, { ...locked, resolved: `${anyRegistry}/${name}/-/${file}` }];
  });
  return { ...lock, packages: Object.fromEntries(packages) };
}

/**
 * Calls `work` while the checkout has an `npm-shrinkwrap.json`, which npm reads in place of package-lock.json: that one names
 * no address, so npm would read the list of all versions of each package. Git ignores the file.
 */
export function withAddressedLock(directory, work) {
  const shrinkwrap = join(directory, 'npm-shrinkwrap.json');
  const lock = JSON.parse(readFileSync(join(directory, 'package-lock.json'), 'utf8'));
  writeFileSync(shrinkwrap, JSON.stringify(withAddresses(lock)));
  try {
    return work();
  } finally {
    rmSync(shrinkwrap, { force: true });
  }
}
