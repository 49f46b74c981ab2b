import type { ProcessIdentity } from '../protocol/index.ts';
import { findProcess } from './identity.ts';
import { ownerOf, readVariable } from './procfs.ts';
import { readOwnerByPs } from './ps.ts';
import { carries, markerVariable } from './scan.ts';

/**
 * Whether exactly this process lives, belongs to this user, and was started by us: it is our child, or its environment carries
 * `marker`. An identity alone is only a record, which another program may have written. Where environments cannot be read
 * (not Linux) the identity and the owner must do.
 */
export function isProvenOurs(identity: ProcessIdentity, marker: string): boolean {
  const entry = findProcess(identity);
  if (typeof entry === 'string') return false;
  if (entry.parent === process.pid) return true;
  const uid = process.getuid?.();
  if (process.platform !== 'linux') return uid === undefined || readOwnerByPs(entry.pid) === uid;
  if (ownerOf(entry.pid) !== uid) return false;
  const read = readVariable(entry.pid, markerVariable);
  return typeof read === 'object' && carries({ marker: read }, marker);
}
