/** npm packages in a tarball, with the versions and digests of the lock file. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { unpackTar } from 'modern-tar/fs';
import { root } from '../toolchain.mjs';

interface Locked {
  readonly version: string;
  readonly integrity: string;
}

const lockedPackages = (): Readonly<Record<string, Partial<Locked>>> =>
  JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages;

function lockedAt(name: string): Locked {
  const { version, integrity } = lockedPackages()[`node_modules/${name}`] ?? {};
  if (version === undefined || integrity === undefined) throw new Error(`package-lock.json has no digest of ${name}`);
  return { version, integrity };
}

/** @throws Error unless the file has the digest of the lock file */
export function verifyIntegrity(file: string, integrity: string): void {
  const [algorithm = '', expected] = integrity.split('-', 2);
  if (algorithm !== 'sha512') throw new Error(`${file}: ${algorithm} is not a digest that this script accepts`);
  const found = createHash('sha512').update(readFileSync(file)).digest('base64');
  if (found !== expected) throw new Error(`${file} does not have the digest of package-lock.json`);
}

/** Files that a running program does not need: headers and change log of Node. */
const unused = /^package\/(?:include|share)\/|^package\/CHANGELOG\.md$/;

/**
 * Directory of a package: in this checkout, where npm has verified it, or a download that is verified by the lock file and cached
 * below `node_modules`.
 * @throws Error when the download fails or its digest differs from the lock file
 */
export async function packageDirectory(name: string): Promise<string> {
  const { version, integrity } = lockedAt(name);
  const own = join(root, 'node_modules', name);
  if (existsSync(join(own, 'package.json'))) return own;
  const cache = join(root, 'node_modules', '.cache', 'release');
  const target = join(
    cache,
    `${name.replaceAll('/', '-')}-${version}-${createHash('sha256').update(integrity).digest('hex').slice(0, 12)}`,
  );
  if (existsSync(target)) return target;
  mkdirSync(cache, { recursive: true });
  const words = [
    'pack',
    '--json',
    '--ignore-scripts',
    '--prefer-offline',
    '--pack-destination',
    cache,
    `${name}@${version}`,
  ];
  const printed = execFileSync('npm', words, { cwd: cache, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
  const [packed] = JSON.parse(printed) as { readonly filename: string }[];
  const file = join(cache, packed?.filename.replace('@', '').replace('/', '-') ?? '');
  const partial = `${target}.${process.pid}`;
  try {
    verifyIntegrity(file, integrity);
    const unpacked = unpackTar(partial, { strip: 1, filter: (header) => !unused.test(header.name) });
    await pipeline(createReadStream(file), createGunzip(), unpacked);
    renameSync(partial, target);
  } finally {
    rmSync(file, { force: true });
    rmSync(partial, { recursive: true, force: true });
  }
  return target;
}
