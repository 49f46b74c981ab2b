import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliDecompressSync } from 'node:zlib';
import { packageRoot, privateCacheDirectory, writeFileAtomic } from '../lib/index.ts';

/** Binaries of uWebSockets.js as the published package holds them (`scripts/package`): compressed, in a directory for each build. */
interface PackedBinaries {
  readonly directory: string;
  /** Variables that name the user's cache. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

const ofPackage = (): PackedBinaries => ({ directory: join(packageRoot(), 'dist', 'uws'), env: process.env });

const digestOf = (content: Buffer): string => createHash('sha256').update(content).digest('hex');

/**
 * Unpacks a binary into the user's cache, once. A file there that differs from the packed one is replaced.
 *
 * @param name of the binary, with platform, architecture and version of Node's interface
 * @returns path of the binary
 * @throws Error where there is no binary for this platform, or no cache directory that only this user can write
 */
export function unpackUws(version: string, name: string, { directory, env } = ofPackage()): string {
  const packed = join(directory, version, `${name}.br`);
  if (!existsSync(packed)) throw new Error(`uWebSockets.js ${version} has no binary for this platform: ${name}`);
  const cache = privateCacheDirectory('binaries', env);
  if (cache === undefined) throw new Error('No cache directory of this user can hold the binary of uWebSockets.js.');
  const digest = readFileSync(join(directory, version, `${name}.sha256`), 'utf8').trim();
  const file = join(cache, `${digest.slice(0, 16)}-${name}`);
  if (existsSync(file) && digestOf(readFileSync(file)) === digest) return file;
  const binary = brotliDecompressSync(readFileSync(packed));
  if (digestOf(binary) !== digest) throw new Error(`${packed} is damaged: install Oratorio again.`);
  writeFileAtomic(file, binary, { isFlushed: false });
  return file;
}
