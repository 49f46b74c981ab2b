import { createHash } from 'node:crypto';

const headerBytes = 12;
/** Bytes before the mode of an entry: times, device, inode. */
const [modeAt, modeEnd] = [24, 28];
/** Bytes before the object: owner and size follow the mode. */
const objectAt = 40;
const objectBytes = 20;
const nameMask = 0x0fff;
const extended = 0x4000;
/** Name and length of an extension. */
const extensionBytes = 8;

/**
 * Hash of the entries of an index of git (gitformat-index(5)) without facts of files, which a program that only reads may renew.
 * For a form other than versions 2 to 4 with SHA-1, hash of all bytes.
 */
export function indexPrint(bytes: Buffer): string {
  const hash = createHash('sha256');
  if (hashEntries(bytes, hash) === undefined) return createHash('sha256').update(bytes).digest('hex');
  return hash.digest('hex');
}

/** `indexPrint` of an index that holds all its entries. @returns undefined: the index is split or sparse, or of an unknown form */
export function wholeIndexPrint(bytes: Buffer): string | undefined {
  const hash = createHash('sha256');
  return hashEntries(bytes, hash) === 'whole' ? hash.digest('hex') : undefined;
}

/** Whether the checksum of an index is right; git can leave it out (`index.skipHash`). */
export function hasIndexSum(bytes: Buffer): boolean {
  const [content, sum] = [bytes.subarray(0, -objectBytes), bytes.subarray(-objectBytes)];
  return sum.every((byte) => byte === 0) || createHash('sha1').update(content).digest().equals(sum);
}

type Sink = { update(part: Buffer): unknown };

/** @returns `part`: other entries are in a shared index, or in trees; undefined: the form is unknown */
function hashEntries(bytes: Buffer, hash: Sink): 'whole' | 'part' | undefined {
  const contentEnd = bytes.length - objectBytes;
  if (contentEnd < headerBytes || bytes.toString('latin1', 0, 4) !== 'DIRC') return undefined;
  const [version, count] = [bytes.readUInt32BE(4), bytes.readUInt32BE(8)];
  if (version < 2 || version > 4) return undefined;
  let at = headerBytes;
  for (let number = 0; number < count; number += 1) {
    const flagsAt = at + objectAt + objectBytes;
    if (flagsAt + 2 > contentEnd) return undefined;
    const flags = bytes.readUInt16BE(flagsAt);
    const nameAt = flagsAt + ((flags & extended) === 0 ? 2 : 4);
    // A name in version 4 begins with the length that it shares with the name before, as a number of one byte or more.
    let textAt = nameAt;
    if (version === 4) while (((bytes[textAt++] ?? 0) & 0x80) !== 0);
    const known = flags & nameMask;
    const end = version !== 4 && known !== nameMask ? textAt + known : bytes.indexOf(0, textAt);
    if (end < textAt || end >= contentEnd) return undefined;
    hash.update(bytes.subarray(at + modeAt, at + modeEnd));
    hash.update(bytes.subarray(at + objectAt, end));
    at = version === 4 ? end + 1 : at + ((end - at + 8) & ~7);
  }
  let form: 'whole' | 'part' = 'whole';
  while (at < contentEnd) {
    if (at + extensionBytes > contentEnd) return undefined;
    const name = bytes.toString('latin1', at, at + 4);
    // Without an extension in lower case git cannot read the entries.
    if (/^[a-z]/.test(name)) form = 'part';
    // The link of a split index names the file that has the other entries.
    if (name === 'link') hash.update(bytes.subarray(at, at + extensionBytes + objectBytes));
    at += extensionBytes + bytes.readUInt32BE(at + 4);
  }
  return at === contentEnd ? form : undefined;
}
