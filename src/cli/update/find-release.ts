import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readReleaseFile } from './address.ts';
import { type ReleaseFile, releaseFile, verifySignature } from './release.ts';

/** Size limit of the checksum list, in bytes. */
const sumsBytes = 1_000_000;
const signatureBytes = 4_096;
/** File of the public key in an installation. Missing in an unsigned release. */
const publicKeyFile = 'release.pub';

/** A release with a verified checksum list. */
export interface Found extends ReleaseFile {
  readonly isSigned: boolean;
  /** Verified content of `SHA256SUMS`. */
  readonly sums: Buffer;
  /** Content of `SHA256SUMS.minisig`; null for an installation without a key. */
  readonly signature: Buffer | null;
}

/** Platform of this machine, as in the names of tarballs. */
const ownPlatform = `${process.platform}-${process.arch}`;

/**
 * Reads and verifies the checksum list of a release.
 *
 * @param root directory of this program, which contains the key that must have signed the release
 * @throws CliError
 */
export async function findRelease(
  directory: URL,
  root: string,
  signal: AbortSignal,
  platform = ownPlatform,
): Promise<Found> {
  const sums = await readReleaseFile({ directory, name: 'SHA256SUMS', limit: sumsBytes, signal });
  const file = releaseFile(sums.toString(), platform);
  const key = join(root, publicKeyFile);
  if (!existsSync(key)) return { ...file, isSigned: false, sums, signature: null };
  const signature = await readReleaseFile({ directory, name: 'SHA256SUMS.minisig', limit: signatureBytes, signal });
  verifySignature(sums, signature.toString(), readFileSync(key, 'utf8'), `oratorio ${file.version}`);
  return { ...file, isSigned: true, sums, signature };
}
