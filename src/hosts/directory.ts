import { createHash } from 'node:crypto';
import { rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensurePrivateDirectory } from '../lib/index.ts';
import { endRecorded } from '../supervise/index.ts';

/** Files of one host: the control path of its `ssh`, and the socket at our end of the tunnel. */
export interface HostFiles {
  /** Directory of the records of processes. */
  readonly records: string;
  readonly control: string;
  readonly socket: string;
}

/** Longest path of a socket that every system takes; `ssh` adds 17 characters while it makes its own. */
const maxSocketPath = 103;
const temporaryEnd = 17;

/** `<home>/hub/hosts` */
const recordsOf = (home: string): string => join(home, 'hub', 'hosts');

/** A path in which `ssh` expands nothing. */
const plain = /^[\w./@+=,-]+$/;

/** A short directory for the sockets of a home whose path does not fit. Its name is the home's; its rights are checked. */
function shortDirectory(home: string): string {
  const uid = process.getuid?.() ?? 0;
  return join(tmpdir(), `oratorio-${uid}-${createHash('sha256').update(home).digest('hex').slice(0, 12)}`);
}

/** Makes the directories (0700) and names the files. @throws Error when a directory belongs to another user */
export function hostFiles(home: string, name: string): HostFiles {
  const records = recordsOf(home);
  ensurePrivateDirectory(records);
  const fits = join(records, `${name}.sock`).length + temporaryEnd <= maxSocketPath && plain.test(records);
  const directory = fits ? records : shortDirectory(home);
  ensurePrivateDirectory(directory);
  const uid = process.getuid?.();
  if (uid !== undefined && statSync(directory).uid !== uid)
    throw new Error(`${directory} belongs to another user. Remove it, then try again`);
  return { records, control: join(directory, `${name}.ctl`), socket: join(directory, `${name}.sock`) };
}

/** Ends every `ssh` that a killed Hub of this home has left. @returns their number */
export const endLeftHosts = (home: string): Promise<number> => endRecorded(recordsOf(home));

/** Removes the sockets of a host whose `ssh` has ended. */
export function removeSockets({ control, socket }: HostFiles): void {
  for (const path of [control, socket]) rmSync(path, { force: true });
}
