/**
 * Walls of a sandbox on macOS: a profile for sandbox-exec with the same content as those of bubblewrap. Written after the profiles of
 * codex and sandbox-runtime, and not tested on a Mac. Later rules win.
 */
import { join } from 'node:path';
import type { SandboxPlaces } from './walls.ts';
import { personalPlaces } from './walls.ts';

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

/** The profile of one command: everything readable but what is hidden, the workspace and temporary files writable. */
export function seatbeltProfile({ workspacePath, network, hidden, readable }: SandboxPlaces): string {
  const secret = [...personalPlaces, ...hidden].map(({ path }) => path);
  const runByGit = ['hooks', 'config', 'config.worktree'].map((name) => join(workspacePath, '.git', name));
  return [
    '(version 1)',
    '(allow default)',
    '(deny file-write*)',
    `(allow file-write* ${below([workspacePath, ...temporary])} ${devices.map((path) => `(literal ${quoted(path)})`).join(' ')})`,
    `(deny file-write* ${below([...runByGit, ...secret])})`,
    `(deny file-read* ${below(secret)})`,
    ...(readable === undefined ? [] : [`(allow file-read* ${below([readable])})`]),
    // A server of one command answers another one, as in the rooms of Linux.
    ...(network === 'allow'
      ? []
      : ['(deny network*)', '(allow network* (local ip "localhost:*") (remote ip "localhost:*"))']),
  ].join('\n');
}
