import { createReadStream } from 'node:fs';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { unpackTar } from 'modern-tar/fs';
import { messageOf } from '../../lib/index.ts';
import { CliError } from '../errors.ts';

/** Size limit of an unpacked tarball, in bytes. */
const unpackedBytes = 400e6;
const maxEntries = 20_000;
const maxDepth = 32;

const refused = (reason: string) =>
  new CliError('failure', `The tarball is invalid: ${reason}.`, 'Nothing was changed.', 'invalidTarball');

/** Characters that are forbidden in file names of a release. */
const isPlain = (name: string): boolean => /^[\w@.+ /-]+$/.test(name);

/**
 * Unpacks a tarball into an empty directory. Accepts only plain files and directories below one top directory.
 *
 * @param top name of that directory
 * @throws CliError for links, devices, other paths and sizes beyond the limits; the directory is then incomplete
 */
export async function unpackRelease(
  archive: string,
  directory: string,
  top: string,
  signal: AbortSignal,
): Promise<void> {
  const seen = new Set<string>();
  let bytes = 0;
  const filter = ({
    name,
    type = 'file',
    size,
  }: {
    readonly name: string;
    readonly type?: string;
    readonly size: number;
  }) => {
    const path = name.replace(/\/$/, '');
    const parts = path.split('/');
    if (type !== 'file' && type !== 'directory') throw refused(`it contains a ${type}`);
    if (!isPlain(path) || parts[0] !== top || parts.some((part) => part === '' || part === '.' || part === '..'))
      throw refused('it contains a path outside of its directory');
    if (seen.has(path)) throw refused('it contains a path twice');
    seen.add(path);
    bytes += size;
    if (bytes > unpackedBytes || seen.size > maxEntries) throw refused('it is too large');
    return true;
  };
  let total = 0;
  const bounded = new Transform({
    transform(chunk: Buffer, _, done) {
      total += chunk.length;
      done(total > unpackedBytes ? refused('it is too large') : null, chunk);
    },
  });
  try {
    const unpacked = unpackTar(directory, { strict: true, maxDepth, filter });
    await pipeline(createReadStream(archive), createGunzip(), bounded, unpacked, { signal });
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof CliError ? error : refused(messageOf(error));
  }
}
