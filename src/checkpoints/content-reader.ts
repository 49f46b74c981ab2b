import { hash as digest } from 'node:crypto';
import { closeSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { zstdDecompressSync } from 'node:zlib';
import type { CheckpointDatabase, Row } from './database.ts';
import { CheckpointError } from './errors.ts';

/** Name of a content: its SHA-256 in hexadecimal digits. */
export const hashOf = (bytes: Uint8Array): string => digest('sha256', bytes, 'hex');

export const nameOfPack = (number: number): string => `${String(number).padStart(6, '0')}.pack`;

/** Codec of a small content in a group, which has this many bytes in the pack. @param at first byte of the content in the group */
export const groupCodec = (length: number, at: number): string => `group:${length}:${at}`;
const groupPattern = /^group:(\d+):(\d+)$/;

export const isInGroup = ({ codec }: Row): boolean => groupPattern.test(String(codec));

const damaged = 'a content of the store is damaged';

/** Reads contents that are committed, also those of another store. Writes nothing. */
export class ContentReader {
  readonly directory: string;
  readonly database: CheckpointDatabase;
  /** Group that was read last: the next small content is often in it, too. */
  #group: { readonly pack: number; readonly start: number; readonly bytes: Buffer } | undefined;

  /** @param directory of the packs */
  constructor(directory: string, database: CheckpointDatabase) {
    this.directory = directory;
    this.database = database;
  }

  /** Reads a content piece by piece, each verified. @throws CheckpointError for a damaged or missing one */
  *read(hash: string): Generator<Buffer> {
    const row = this.rowOf(hash);
    if (row['codec'] !== 'list') {
      yield this.verified(hash, row);
      return;
    }
    for (const piece of this.database.all('SELECT hash FROM pieces WHERE list = ? ORDER BY number', hash)) {
      const own = String(piece['hash']);
      yield this.verified(own, this.rowOf(own));
    }
  }

  /** Place of a content. @throws CheckpointError for a missing one */
  protected rowOf(hash: string): Row {
    const row = this.database.get('SELECT * FROM blobs WHERE hash = ?', hash);
    if (!row) throw new CheckpointError('a content is missing in the store');
    return row;
  }

  /** Stored bytes of a content in its pack. */
  protected packed(row: Row): Buffer {
    const fd = openSync(join(this.directory, nameOfPack(Number(row['pack']))), 'r');
    try {
      return readFully(fd, row);
    } finally {
      closeSync(fd);
    }
  }

  /** Bytes of a content, or of a list, verified. @throws CheckpointError for a damaged one */
  protected verified(hash: string, row: Row): Buffer {
    const content = this.#unpacked(row);
    if (hashOf(content) !== hash) throw new CheckpointError(damaged);
    return content;
  }

  /** Forgets the group that was read last: another one may take its place. */
  protected forgetGroup(): void {
    this.#group = undefined;
  }

  #unpacked(row: Row): Buffer {
    const [, length, at] = groupPattern.exec(String(row['codec'])) ?? [];
    if (length === undefined) {
      const bytes = this.packed(row);
      return row['codec'] === 'zstd' ? decompressed(bytes) : bytes;
    }
    const [pack, start, from] = [Number(row['pack']), Number(row['start']), Number(at)];
    if (this.#group?.pack !== pack || this.#group.start !== start) {
      this.#group = { pack, start, bytes: decompressed(this.packed({ pack, start, length })) };
    }
    return this.#group.bytes.subarray(from, from + Number(row['size']));
  }
}

/** @throws CheckpointError for bytes that are not a frame */
function decompressed(bytes: Uint8Array): Buffer {
  try {
    return zstdDecompressSync(bytes);
  } catch (error) {
    throw new CheckpointError(damaged, { cause: error });
  }
}

/** @throws CheckpointError when the pack is shorter */
export function readFully(fd: number, row: Row): Buffer {
  const [start, length] = [Number(row['start']), Number(row['length'])];
  const bytes = Buffer.allocUnsafe(length);
  for (let done = 0; done < length; ) {
    const read = readSync(fd, bytes, done, length - done, start + done);
    if (read === 0) throw new CheckpointError('a pack of the store is cut off');
    done += read;
  }
  return bytes;
}
