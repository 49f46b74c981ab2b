/** Reproducible archives: sorted, without owners, with one modification time. */
import { createWriteStream, lstatSync, readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { packTar, type TarSource } from 'modern-tar/fs';

/** Modification time of every file: SOURCE_DATE_EPOCH, else 1980. */
export const archiveTime = (): Date => new Date(Number(process.env['SOURCE_DATE_EPOCH'] ?? 315532800) * 1000);

/** Entries for all files below `directory`, at `prefix` in the archive. */
export function sourcesBelow(directory: string, prefix: string): TarSource[] {
  const mtime = archiveTime();
  const paths = readdirSync(directory, { withFileTypes: true, recursive: true })
    .map((entry) => ({ source: join(entry.parentPath, entry.name), isDirectory: entry.isDirectory() }))
    .sort((one, other) => (one.source < other.source ? -1 : 1));
  const owner = { uid: 0, gid: 0, mtime };
  return paths.map(({ source, isDirectory }) => {
    const target = `${prefix}/${relative(directory, source)}`;
    if (isDirectory) return directoryEntry(target);
    const mode = lstatSync(source).mode & 0o111 ? 0o755 : 0o644;
    return { type: 'file', source, target, mode, ...owner };
  });
}

export const directoryEntry = (target: string): TarSource => ({
  type: 'content',
  content: '',
  target: `${target}/`,
  mode: 0o755,
  mtime: archiveTime(),
});

export const textEntry = (target: string, content: string | Uint8Array): TarSource => ({
  type: 'content',
  content,
  target,
  mode: 0o644,
  mtime: archiveTime(),
});

/** @param level compression level of gzip: 9 for a release, 1 for a test */
export async function writeArchive(file: string, sources: readonly TarSource[], level = 9): Promise<void> {
  await pipeline(compressed(sources, level), createWriteStream(file));
}

const compressed = (sources: readonly TarSource[], level: number): Readable =>
  packTar(sources, { map: (header) => ({ ...header, uname: 'root', gname: 'root' }) }).pipe(createGzip({ level }));
