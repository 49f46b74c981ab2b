import { isUtf8 } from 'node:buffer';
import { type Dirent, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** A path: bytes if it is not UTF-8. */
export type BytePath = string | Buffer;

/** Distinct for distinct paths. */
export const keyOf = (path: BytePath): string => (typeof path === 'string' ? path : `\0${path.toString('latin1')}`);

/** Text where the path is UTF-8: one odd name makes bytes of all names that are read with it. */
export function joined(directory: BytePath, name: BytePath): BytePath {
  if (typeof directory === 'string' && typeof name === 'string') return join(directory, name);
  const path = Buffer.concat([Buffer.from(directory), Buffer.from('/'), Buffer.from(name)]);
  return isUtf8(path) ? path.toString() : path;
}

/** Directory of a path. */
export function parentOf(path: BytePath): BytePath {
  if (typeof path === 'string') return path.slice(0, path.lastIndexOf('/')) || '/';
  const parent = path.subarray(0, path.lastIndexOf(0x2f));
  const text = parent.toString();
  return Buffer.from(text).equals(parent) ? text : parent;
}

/** Entries of a directory. Names that are not UTF-8 are bytes. */
export function readEntries(path: BytePath): readonly (Dirent<string> | Dirent<Buffer>)[] {
  const entries = readdirSync(path, { withFileTypes: true });
  const isText = !entries.some(({ name }) => name.includes('\ufffd'));
  return isText ? entries : readdirSync(path, { withFileTypes: true, encoding: 'buffer' });
}

/** Entries of a directory; none where it cannot be read. */
export function entriesIn(path: BytePath): readonly (Dirent<string> | Dirent<Buffer>)[] {
  try {
    return readEntries(path);
  } catch {
    return [];
  }
}

/** Last part of a path. */
export const nameIn = (path: BytePath): BytePath =>
  typeof path === 'string' ? path.slice(path.lastIndexOf('/') + 1) : path.subarray(path.lastIndexOf(0x2f) + 1);
