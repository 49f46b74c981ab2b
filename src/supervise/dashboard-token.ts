import { randomBytes } from 'node:crypto';
import { chmodSync, linkSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeFileAtomic } from './files.ts';

/** Where the token of this user's dashboards is: one for all workspaces, so that a bookmark survives restarts. */
export const dashboardTokenFile = (home: string): string => join(home, 'dashboard.token');

/** 32 random bytes in an alphabet that needs no escaping in a URL. */
const shape = /^[A-Za-z0-9_-]{43}$/;
const makeToken = (): string => randomBytes(32).toString('base64url');

/**
 * The token of this user's dashboards; made when there is none (0600). Processes that ask at the same time get the same.
 *
 * @param home the user's home of Oratorio
 * @throws Error when it can be neither read nor written
 */
export function dashboardToken(home: string): string {
  return readToken(home) ?? createToken(home);
}

/** Puts another token in its place: from now on the old one opens nothing. */
export function renewDashboardToken(home: string): string {
  mkdirSync(home, { recursive: true, mode: 0o700 });
  const token = makeToken();
  writeFileAtomic(dashboardTokenFile(home), `${token}\n`);
  return token;
}

function readToken(home: string): string | undefined {
  const file = dashboardTokenFile(home);
  try {
    const token = readFileSync(file, 'utf8').trim();
    // Whoever copied the file may have opened it to others.
    if (process.platform !== 'win32' && (statSync(file).mode & 0o077) !== 0) chmodSync(file, 0o600);
    return shape.test(token) ? token : undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** The first who links it has made it: everybody else reads what the first has written. */
function createToken(home: string): string {
  mkdirSync(home, { recursive: true, mode: 0o700 });
  const file = dashboardTokenFile(home);
  const mine = join(home, `.dashboard.token.${process.pid}.${randomBytes(6).toString('hex')}.tmp`);
  try {
    writeFileSync(mine, `${makeToken()}\n`, { mode: 0o600, flag: 'wx' });
    linkSync(mine, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') return renewDashboardToken(home);
  } finally {
    rmSync(mine, { force: true });
  }
  // What is there and is no token is of no use to anybody.
  return readToken(home) ?? renewDashboardToken(home);
}

/** The token as it is now, for a server: a token that was renewed holds at once. Looks at the file with every call, which costs some microseconds. */
export function watchedDashboardToken(home: string): () => string {
  let token = dashboardToken(home);
  let seen = stamp(home);
  return () => {
    const now = stamp(home);
    if (now !== seen) {
      token = dashboardToken(home);
      seen = stamp(home);
    }
    return token;
  };
}

/** Changes when the file does; of one that cannot be looked at the token stays what it was. */
function stamp(home: string): string {
  const found = statSync(dashboardTokenFile(home), { throwIfNoEntry: false });
  return found === undefined ? '' : `${found.ino} ${found.mtimeMs} ${found.size}`;
}
