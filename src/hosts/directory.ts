import { createHash } from 'node:crypto';
import { lstatSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensurePrivateDirectory } from '../lib/index.ts';
import { endRecorded } from '../supervise/index.ts';

/** Files of one host: the control path of its `ssh`, and the socket at the local end of the tunnel. */
export interface HostFiles {
  /** Directory of the process records. */
  readonly records: string;
  readonly control: string;
  readonly socket: string;
}

/** Longest socket path that every system accepts. `ssh` adds 17 characters while it creates a socket. */
const maxSocketPath = 103;
const temporaryEnd = 17;

/** `<home>/hub/hosts` */
const recordsOf = (home: string): string => join(home, 'hub', 'hosts');

/** Path without characters that `ssh` expands. */
const plain = /^[\w./@+=,-]+$/;

/** Short directory for the sockets of a home whose path is too long. Its name is derived from the home, and its owner is checked. */
function shortDirectory(home: string): string {
  const uid = process.getuid?.() ?? 0;
  return join(tmpdir(), `oratorio-${uid}-${createHash('sha256').update(home).digest('hex').slice(0, 12)}`);
}

/** Creates the directories (0700) and returns the paths of the files. @throws Error when a directory belongs to another user */
export function hostFiles(home: string, name: string): HostFiles {
  const records = recordsOf(home);
  ensurePrivateDirectory(records);
  const fits = join(records, `${name}.sock`).length + temporaryEnd <= maxSocketPath && plain.test(records);
  const directory = fits ? records : shortDirectory(home);
  requireOwn(directory);
  ensurePrivateDirectory(directory);
  requireOwn(directory);
  return { records, control: join(directory, `${name}.ctl`), socket: join(directory, `${name}.sock`) };
}

/** Checks the owner of an entry, also of a link: another user could let theirs lead elsewhere later. @throws Error */
function requireOwn(directory: string): void {
  const uid = process.getuid?.();
  const entry = lstatSync(directory, { throwIfNoEntry: false });
  if (entry !== undefined && uid !== undefined && entry.uid !== uid)
    throw new Error(`${directory} belongs to another user. Remove it, then try again`);
}

/** Ends every `ssh` that a killed Hub of this home left running. @returns number of ended processes */
export const endOrphanedSsh = (home: string): Promise<number> => endRecorded(recordsOf(home));

/** Removes the sockets of a host whose `ssh` has ended. */
export function removeSockets({ control, socket }: HostFiles): void {
  for (const path of [control, socket]) rmSync(path, { force: true });
}
