import { randomBytes } from 'node:crypto';
import { closeSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { pieceBytes } from '../../src/checkpoints/limits.ts';
import { piecesOf } from '../../src/checkpoints/pieces.ts';

const directory = t.testdir();

function read(content: Buffer, size: number): Buffer[] {
  const file = join(directory, 'file');
  writeFileSync(file, content);
  const fd = openSync(file, 'r');
  try {
    return [...piecesOf(fd, size)];
  } finally {
    closeSync(fd);
  }
}

for (const size of [0, 1, pieceBytes - 1, pieceBytes, pieceBytes + 1, 2 * pieceBytes, 2 * pieceBytes + 7]) {
  t.test(`a file of ${size} bytes is read whole, in full pieces but the last`, async (t) => {
    const content = randomBytes(size);
    const pieces = read(content, size);
    t.ok(Buffer.concat(pieces).equals(content));
    t.equal(pieces.length, Math.max(1, Math.ceil(size / pieceBytes)));
    t.ok(pieces.slice(0, -1).every((piece) => piece.length === pieceBytes));
  });

  t.test(`a file that is not the ${size} bytes long that were expected has pieces of another length`, async (t) => {
    t.not(Buffer.concat(read(randomBytes(size + 3), size)).length, size, 'longer');
    if (size > 0) t.not(Buffer.concat(read(randomBytes(size - 1), size)).length, size, 'shorter');
  });
}
