import { homedir, userInfo } from 'node:os';
import { isAbsolute } from 'node:path';

/**
 * Home of the user: `HOME` where it is an absolute path, else the home in the password database. An empty or relative `HOME`
 * would make every path below it depend on the directory in which a program was started.
 *
 * @throws Error when neither is absolute
 */
export function userHome(env: Readonly<Record<string, string | undefined>> = process.env): string {
  const given = process.platform === 'win32' ? undefined : env['HOME'];
  for (const home of [given ?? attempt(homedir), attempt(() => userInfo().homedir)]) {
    if (home !== undefined && isAbsolute(home)) return home;
  }
  throw new Error(
    'The home directory of this user is unknown: HOME is not an absolute path. Set HOME or ORATORIO_HOME.',
  );
}

/** Both questions fail for a user without an entry, as in a container with a free uid. */
function attempt(ask: () => string): string | undefined {
  try {
    return ask();
  } catch {
    return undefined;
  }
}
