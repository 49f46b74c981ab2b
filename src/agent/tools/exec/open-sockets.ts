import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { canonicalPath } from '../../../lib/index.ts';
import { statOf } from './mount-plan.ts';

/**
 * Canonical paths of the unix sockets that programs of this network have bound. Names without a directory are looked up in the working
 * directories of the user's processes. Sockets of containers with a network of their own are not in the kernel's list.
 */
export function boundSockets(): readonly string[] {
  const names = namesInTable();
  const plain = names.filter((name) => isAbsolute(name));
  const others = names.filter((name) => !isAbsolute(name));
  const directories = others.length === 0 ? [] : workingDirectories();
  const candidates = [...plain, ...directories.flatMap((directory) => others.map((name) => join(directory, name)))];
  return [
    ...new Set(candidates.filter((path) => statOf(path)?.isSocket() === true).map((path) => canonicalPath(path))),
  ].sort();
}

/** Names of bound sockets; abstract ones, which begin with `@`, belong to the network and are closed with it. */
function namesInTable(): readonly string[] {
  let table: string;
  try {
    table = readFileSync('/proc/net/unix', 'utf8');
  } catch {
    return [];
  }
  const names = table
    .split('\n')
    .slice(1)
    // The eighth column; a name may have blanks.
    .flatMap((line) => /^(?:\S+ +){6}\S+ (.+)$/.exec(line)?.[1] ?? [])
    .filter((name) => !name.startsWith('@'));
  return [...new Set(names)];
}

function workingDirectories(): readonly string[] {
  const found = new Set<string>();
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      found.add(readlinkSync(`/proc/${pid}/cwd`));
    } catch {
      // The process has ended, or belongs to another user.
    }
  }
  return [...found];
}
