import { createHash } from 'node:crypto';

const headerBytes = 12;
/** Bytes before the mode of an entry: times, device, inode. */
const [modeAt, modeEnd] = [24, 28];
/** Bytes before the object: owner and size follow the mode. */
const objectAt = 40;
const nameMask = 0x0fff;
const extended = 0x4000;

/**
 * Hash of the entries of an index of git (gitformat-index(5)) without facts of files, which a program that only reads may renew. An index of
 * another form than versions 2 to 4 with SHA-1 counts with all its bytes.
 */
export function indexPrint(bytes: Buffer): string {
  const hash = createHash('sha256');
  if (!hashEntries(bytes, (part) => hash.update(part))) return createHash('sha256').update(bytes).digest('hex');
  return hash.digest('hex');
}

/** @returns false: the form is not known */
function hashEntries(bytes: Buffer, add: (part: Buffer) => void): boolean {
  if (bytes.length < headerBytes || bytes.toString('latin1', 0, 4) !== 'DIRC') return false;
  const [version, count] = [bytes.readUInt32BE(4), bytes.readUInt32BE(8)];
  if (version < 2 || version > 4) return false;
  let at = headerBytes;
  for (let number = 0; number < count; number += 1) {
    const flagsAt = at + objectAt + 20;
    if (flagsAt + 2 > bytes.length) return false;
    const flags = bytes.readUInt16BE(flagsAt);
    const nameAt = flagsAt + ((flags & extended) === 0 ? 2 : 4);
    // Version 4 begins a name with the length that it shares with the one before, as a number of one byte or more.
    let textAt = nameAt;
    if (version === 4) while (((bytes[textAt++] ?? 0) & 0x80) !== 0);
    const known = flags & nameMask;
    const end = version !== 4 && known !== nameMask ? textAt + known : bytes.indexOf(0, textAt);
    if (end < textAt || end >= bytes.length) return false;
    add(bytes.subarray(at + modeAt, at + modeEnd));
    add(bytes.subarray(at + objectAt, end));
    at = version === 4 ? end + 1 : at + ((end - at + 8) & ~7);
  }
  // The link of a split index names the file that has the other entries.
  const link = bytes.indexOf('link', at, 'latin1');
  if (link !== -1 && link + 28 <= bytes.length) add(bytes.subarray(link, link + 28));
  return true;
}
