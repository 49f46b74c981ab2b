/**
 * Mounts of a sandbox on macOS: a profile for sandbox-exec with the same rules as for bubblewrap. Written after the profiles of
 * codex and sandbox-runtime, and not tested on a Mac. Later rules win.
 */
import { isWithin } from '../paths.ts';
import type { PathAccess } from './mount-plan.ts';
import type { Mounts, SandboxPlaces } from './mounts.ts';

/** Part of macOS, at a fixed place: another one on the path could be anything. */
export const sandboxExec = '/usr/bin/sandbox-exec';

/** Directories for temporary files, by their real paths. */
const temporary = ['/private/tmp', '/private/var/tmp', '/private/var/folders'];
const devices = ['/dev/null', '/dev/zero', '/dev/tty', '/dev/dtracehelper'];

/** A text of a profile. @throws RangeError for a path with a control character, which no profile can hold */
function quoted(path: string): string {
  if (/\p{Cc}/u.test(path)) throw new RangeError('a path with a control character has no place in a sandbox');
  return `"${path.replace(/["\\]/g, '\\$&')}"`;
}

const below = (paths: readonly string[]): string => paths.map((path) => `(subpath ${quoted(path)})`).join(' ');

/** The profile of one command. */
export function seatbeltProfile({ network }: Pick<SandboxPlaces, 'network'>, { plan }: Mounts): string {
  const rows = plan.places().filter(({ path }) => !['/', '/tmp', '/dev', '/proc'].includes(path));
  return [
    '(version 1)',
    '(allow default)',
    '(deny file-write*)',
    `(allow file-write* ${below(temporary)} ${devices.map((path) => `(literal ${quoted(path)})`).join(' ')})`,
    ...rows.flatMap((row) => linesOf(row, rows)),
    // Commands can connect to a server of another command, as in the sandboxes of Linux. Unix sockets count as network.
    ...(network === 'allow'
      ? []
      : ['(deny network*)', '(allow network* (local ip "localhost:*") (remote ip "localhost:*"))']),
  ].join('\n');
}

function linesOf({ path, access }: PathAccess, rows: readonly PathAccess[]): readonly string[] {
  const place = below([path]);
  switch (access) {
    case 'write':
      return [`(allow file-read* file-write* ${place})`];
    case 'read':
      return [`(allow file-read* ${place})`, `(deny file-write* ${place})`];
    case 'absentFile':
    case 'absentDirectory':
      return [`(deny file-write* ${place})`];
    default: {
      // A program that opens a file asks about the directories above it.
      const isAround = rows.some((row) => row.path !== path && isWithin(path, row.path));
      return [`(deny file-read* file-write* ${place})`, ...(isAround ? [`(allow file-read-metadata ${place})`] : [])];
    }
  }
}
