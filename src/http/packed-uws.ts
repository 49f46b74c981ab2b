import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { brotliDecompressSync } from 'node:zlib';
import { packageRoot, privateCacheDirectory, writeFileAtomic } from '../lib/index.ts';

/** Binaries of uWebSockets.js as the published package holds them (`scripts/package`): compressed, one for each platform. */
interface PackedBinaries {
  readonly directory: string;
  /** Variables that name the user's cache. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

const digestOf = (content: Buffer): string => createHash('sha256').update(content).digest('hex');

/**
 * Unpacks the binary for this platform into the user's cache, once. A file there that differs from the packed one is replaced.
 *
 * @returns path of the binary
 * @throws Error where there is no binary for this platform, or no cache directory that only this user can write
 */
export function unpackUws({ directory, env }: PackedBinaries): string {
  const name = `uws_${process.platform}_${process.arch}_${process.versions.modules}.node`;
  const packed = join(directory, `${name}.br`);
  if (!existsSync(packed)) throw new Error(`uWebSockets.js has no binary for this platform: ${name}`);
  const cache = privateCacheDirectory('binaries', env);
  if (cache === undefined) throw new Error('No cache directory of this user can hold the binary of uWebSockets.js.');
  const digest = readFileSync(join(directory, `${name}.sha256`), 'utf8').trim();
  const file = join(cache, `${digest.slice(0, 16)}-${name}`);
  if (existsSync(file) && digestOf(readFileSync(file)) === digest) return file;
  const binary = brotliDecompressSync(readFileSync(packed));
  if (digestOf(binary) !== digest) throw new Error(`${packed} is damaged: install Oratorio again.`);
  writeFileAtomic(file, binary, { isFlushed: false });
  return file;
}

/** The library of the published package, which has no `uWebSockets.js` in its `node_modules`. @throws Error as `unpackUws` */
export function loadPackedUws(): typeof import('uWebSockets.js') {
  const root = packageRoot();
  const file = unpackUws({ directory: join(root, 'dist', 'uws'), env: process.env });
  return createRequire(join(root, 'package.json'))(file) as typeof import('uWebSockets.js');
}
