import { closeSync, constants, fstatSync, openSync } from 'node:fs';
import { hashOf } from './content-reader.ts';
import { piecesOf } from './pieces.ts';

const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants;

/** Hash of a file's content in the form of the store; undefined for an entry that is not a file of this size. */
export function hashOfFile(path: string | Buffer, size: number): string | undefined {
  const fd = openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  try {
    if (!fstatSync(fd).isFile()) return undefined;
    const pieces: string[] = [];
    let total = 0;
    for (const piece of piecesOf(fd, size)) {
      pieces.push(hashOf(piece));
      total += piece.length;
    }
    if (total !== size) return undefined;
    return pieces.length === 1 ? pieces[0] : hashOf(Buffer.from(`list\n${pieces.join('')}`));
  } finally {
    closeSync(fd);
  }
}
