/**
 * `preinstall` of the checkout's manifest. `npm pack` runs no script here (.npmrc), so it packs this manifest, with all 450 MB of its
 * dependencies. An installation of that package ends here; in a checkout, which has the sources, and in the package of
 * `npm run package`, which has no scripts, nothing happens.
 */
import { existsSync } from 'node:fs';
import process from 'node:process';

if (!existsSync(new URL('../../src', import.meta.url))) {
  console.error(
    'This package was made with plain "npm pack": it would install everything that building Oratorio takes.\n' +
      'In the checkout run: npm install -g "$(npm run --silent package)"',
  );
  process.exit(1);
}
