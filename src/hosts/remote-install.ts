/** Fixed commands that install Oratorio on another machine. No text of that machine becomes part of a command. */
import { shellWord } from '../lib/index.ts';

/** Command of `install.sh` in the home of the remote user. A shell without login rarely finds it by name. */
export const installedProgram = '~/.local/bin/oratorio';

/** Prints the operating system and the processor of a machine. */
export const platformCommand = 'uname -sm';

const systems = new Map([
  ['Linux', 'linux'],
  ['Darwin', 'darwin'],
]);
const processors = new Map([
  ['x86_64', 'x64'],
  ['amd64', 'x64'],
  ['aarch64', 'arm64'],
  ['arm64', 'arm64'],
]);

/** Finds the platform of a release in the output of `platformCommand`; undefined for a machine without a tarball. */
export function platformIn(stdout: string): string | undefined {
  const [system = '', processor = ''] = stdout.trim().split('\n').at(-1)?.split(' ') ?? [];
  const [os, arch] = [systems.get(system), processors.get(processor)];
  return os === undefined || arch === undefined ? undefined : `${os}-${arch}`;
}

/** Line of `installCommand` after it has received every file. */
export const receivedWord = 'oratorio-received';

/**
 * Reads a tar archive with `install.sh`, `SHA256SUMS` and a tarball from standard input. Installs the tarball for this user, and prints
 * the address of the new Hub. Updates an earlier installation of the script. Removes its files, and a first installation that does not
 * start. A shell of any kind passes the words on to `sh`.
 */
export const installCommand = `sh -c ${shellWord(
  [
    'set -eu',
    'umask 077',
    'unset XDG_DATA_HOME XDG_BIN_HOME',
    'base=$HOME/.local/share/oratorio',
    // Files of a call that was killed.
    'find "$HOME" -maxdepth 1 -name ".oratorio-install.*" -mmin +120 -exec rm -rf {} +',
    'work=$(mktemp -d "$HOME/.oratorio-install.XXXXXX")',
    'clean() { rm -rf "$work"; }',
    'trap clean EXIT',
    'trap "exit 130" INT TERM HUP PIPE',
    'tar -x -f - -C "$work"',
    `echo ${receivedWord}`,
    // A lost connection does not end an installation halfway: its output goes to a file.
    'failed() { cat "$work/log" >&2; exit 20; }',
    'if [ -e "$base/current" ]; then first=; "$base/current/bin/oratorio" self-update --from "$work" >"$work/log" 2>&1 || failed; ' +
      'else first=yes; sh "$work/install.sh" --from "$work" >"$work/log" 2>&1 || failed; fi',
    'undo() { [ -z "$first" ] || sh "$work/install.sh" --uninstall >/dev/null 2>&1; }',
    '"$HOME/.local/bin/oratorio" hub address --json --start >"$work/address" 2>"$work/log" || { undo; failed; }',
    'cat "$work/address"',
  ].join('; '),
)}`;
