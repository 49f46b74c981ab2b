import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readReleaseFile } from './address.ts';
import { type ReleaseFile, releaseFile, verifySignature } from './release.ts';

/** Most bytes of the list of checksums. */
const sumsBytes = 1_000_000;
const signatureBytes = 4_096;
/** Public key in an installed product. A release that is not signed has none. */
const publicKeyFile = 'release.pub';

/** A release that was found, with verified checksums. */
export interface Found extends ReleaseFile {
  readonly isSigned: boolean;
}

/**
 * Reads the list of a release.
 *
 * @param root directory of this program, whose key the release must be signed with
 * @throws CliError
 */
export async function findRelease(directory: URL, root: string, signal: AbortSignal): Promise<Found> {
  const platform = `${process.platform}-${process.arch}`;
  const sums = await readReleaseFile({ directory, name: 'SHA256SUMS', limit: sumsBytes, signal });
  const file = releaseFile(sums.toString(), platform);
  const key = join(root, publicKeyFile);
  if (!existsSync(key)) return { ...file, isSigned: false };
  const signature = await readReleaseFile({ directory, name: 'SHA256SUMS.minisig', limit: signatureBytes, signal });
  verifySignature(sums, signature.toString(), readFileSync(key, 'utf8'), `oratorio ${file.version}`);
  return { ...file, isSigned: true };
}
