import { readSync } from 'node:fs';
import { pieceBytes } from './limits.ts';

/**
 * Reads a file of `size` bytes from its start, in the pieces of the store. Their total length differs from `size` when the file is
 * shorter, or longer: the read asks for one byte more, which shows that the file has grown.
 */
export function* piecesOf(fd: number, size: number): Generator<Buffer> {
  for (let total = 0; total <= size; ) {
    const bytes = Buffer.allocUnsafe(Math.min(pieceBytes, size - total + 1));
    let length = 0;
    while (length < bytes.length) {
      const read = readSync(fd, bytes, length, bytes.length - length, total + length);
      length += read;
      // A short read is the end of the file: another read would only confirm it.
      if (read === 0 || total + length === size) break;
    }
    // An empty file is one empty piece.
    if (length > 0 || total === 0) yield bytes.subarray(0, length);
    total += length;
    if (length < bytes.length) return;
  }
}

/** Pieces of a content that is in memory. */
export function* slicesOf(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < Math.max(1, bytes.length); at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
}
