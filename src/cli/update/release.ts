/** Parses the checksum list of a release, and verifies its signature. */
import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto';
import { isVersion } from '../../lib/index.ts';
import { CliError } from '../errors.ts';

/** Tarball of a release for one platform. */
export interface ReleaseFile {
  readonly version: string;
  /** File name. */
  readonly name: string;
  readonly sha256: string;
}

const nothingChanged = 'Nothing was changed.';

/**
 * Finds the tarball of a platform in `SHA256SUMS`.
 * @throws CliError unless exactly one line names it
 */
export function releaseFile(sums: string, platform: string): ReleaseFile {
  const [beginning, end] = ['oratorio-', `-${platform}.tar.gz`];
  const found = sums.split('\n').flatMap((line): ReleaseFile[] => {
    const [, sha256 = '', name = ''] = /^([0-9a-f]{64}) [ *](\S{1,200})$/.exec(line) ?? [];
    if (!name.startsWith(beginning) || !name.endsWith(end)) return [];
    const version = name.slice(beginning.length, -end.length);
    return isVersion(version) ? [{ version, name, sha256 }] : [];
  });
  const [only, ...others] = found;
  if (only === undefined || others.length > 0) {
    const count = only === undefined ? 'no tarball' : 'several tarballs';
    throw new CliError('failure', `The release has ${count} for ${platform}.`, nothingChanged, 'invalidRelease');
  }
  return only;
}

/** SHA-256 of a file in `SHA256SUMS`; undefined if the list does not name it. */
export const checksumIn = (sums: string, file: string): string | undefined =>
  sums.split('\n').flatMap((line) => (line.slice(66) === file ? line.slice(0, 64) : []))[0];

/** DER prefix of an Ed25519 public key of 32 bytes. */
const keyHeading = Buffer.from('302a300506032b6570032100', 'hex');

interface PublicKey {
  readonly id: Buffer;
  readonly key: KeyObject;
}

function parsePublicKey(text: string): PublicKey | undefined {
  const bytes = Buffer.from(text.trim().split('\n').at(-1) ?? '', 'base64');
  if (bytes.length !== 42 || bytes.subarray(0, 2).toString() !== 'Ed') return undefined;
  const key = createPublicKey({ key: Buffer.concat([keyHeading, bytes.subarray(10)]), format: 'der', type: 'spki' });
  return { id: bytes.subarray(2, 10), key };
}

/**
 * Verifies a signature in the format of minisign, with its trusted comment.
 * @param publicKey text of the key file
 * @throws CliError unless this key signed this text and this comment
 */
export function verifySignature(message: Buffer, signature: string, publicKey: string, comment: string): void {
  const key = parsePublicKey(publicKey);
  const [, first = '', second = '', third = ''] = signature.split('\n');
  const bytes = Buffer.from(first, 'base64');
  const [algorithm, id, own] = [bytes.subarray(0, 2).toString(), bytes.subarray(2, 10), bytes.subarray(10)];
  const digest = createHash('blake2b512').update(message).digest();
  const trusted = second.replace(/^trusted comment: /, '');
  const isGood =
    key !== undefined &&
    algorithm === 'ED' &&
    id.equals(key.id) &&
    own.length === 64 &&
    verify(null, digest, key.key, own) &&
    verify(null, Buffer.concat([own, Buffer.from(trusted)]), key.key, Buffer.from(third, 'base64')) &&
    trusted === comment;
  if (isGood) return;
  const problem = 'The release is not signed with the key of this installation.';
  throw new CliError('failure', problem, nothingChanged, 'invalidSignature');
}
