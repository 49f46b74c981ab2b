import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { StringDecoder } from 'node:string_decoder';

/** File for the part that `capLog` cuts off. */
export const olderLog = (file: string): string => `${file}.1`;

/**
 * The last `bytes` of a log at most, continued into the older part when the file was cut a moment ago. Never begins or
 * ends inside a character. A log that does not exist is empty. Blocks for two small reads.
 */
export function readTail(file: string, bytes: number): string {
  const newest = lastBytes(file, bytes);
  const older = newest.length < bytes ? lastBytes(olderLog(file), bytes - newest.length) : Buffer.alloc(0);
  const tail = Buffer.concat([older, newest]);
  // The decoder holds back an unfinished character at the end.
  return new StringDecoder('utf8').write(tail.subarray(firstCharacter(tail)));
}

/** At most three bytes of a character that began before the cut. */
function firstCharacter(bytes: Buffer): number {
  let at = 0;
  while (at < 3 && ((bytes[at] ?? 0) & 0xc0) === 0x80) at++;
  return at;
}

function lastBytes(file: string, bytes: number): Buffer {
  let fd: number;
  try {
    fd = openSync(file, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return Buffer.alloc(0);
    throw error;
  }
  try {
    const { size } = fstatSync(fd);
    const tail = Buffer.alloc(Math.min(size, Math.max(0, bytes)));
    return tail.subarray(0, readSync(fd, tail, 0, tail.length, size - tail.length));
  } finally {
    closeSync(fd);
  }
}
