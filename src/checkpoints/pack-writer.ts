import { closeSync, constants, fdatasyncSync, ftruncateSync, openSync, readdirSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { constants as zlib, zstdCompressSync } from 'node:zlib';
import { groupCodec, nameOfPack, readFully } from './content-reader.ts';
import type { CheckpointDatabase, Row } from './database.ts';
import { CheckpointError } from './errors.ts';
import { packBytes } from './limits.ts';

/** Place of a content in the packs, and its codec. */
export interface PackLocation {
  readonly pack: number;
  readonly start: number;
  readonly length: number;
  readonly codec: string;
}

/** A small content, compressed together with others. */
export interface Small {
  readonly hash: string;
  readonly bytes: Uint8Array;
}

/** Smallest piece that is worth compressing, in bytes. */
const leastCompressed = 64;
const leastChunkBytes = 1_024;
const { O_RDWR, O_CREAT, O_NOFOLLOW = 0 } = constants;

/** Packs that only grow: writes at the end of the last one. */
export class PackWriter {
  readonly #directory: string;
  readonly #database: CheckpointDatabase;
  #pack = 1;
  #length = 0;
  #fd: number | undefined;
  #isDirty = false;

  /** @param directory of the packs */
  constructor(directory: string, database: CheckpointDatabase) {
    this.#directory = directory;
    this.#database = database;
  }

  /** Number of the last pack. */
  get pack(): number {
    return this.#pack;
  }

  /** Bytes of the last pack. */
  get length(): number {
    return this.#length;
  }

  /** Truncates the last pack to its committed length, and removes packs without a row. */
  open(): void {
    const packs = this.#database.all('SELECT number, length FROM packs ORDER BY number');
    const known = new Set(packs.map((row) => nameOfPack(Number(row['number']))));
    for (const name of readdirSync(this.#directory)) {
      if (!known.has(name)) rmSync(join(this.#directory, name), { force: true });
    }
    const last = packs.at(-1);
    this.#pack = Number(last?.['number'] ?? 1);
    this.#length = Number(last?.['length'] ?? 0);
    this.#isDirty = false;
    this.#openPack();
    ftruncateSync(this.#required(), this.#length);
  }

  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }

  /** Bytes of a content of the last pack. */
  read(row: Row): Buffer {
    return readFully(this.#required(), row);
  }

  /** Writes bytes at the end of the pack. @returns their place */
  write(bytes: Uint8Array): Omit<PackLocation, 'codec'> {
    if (this.#length + bytes.length > packBytes && this.#length > 0) this.next();
    const fd = this.#required();
    for (let done = 0; done < bytes.length; ) {
      done += writeSync(fd, bytes, done, bytes.length - done, this.#length + done);
    }
    const place = { pack: this.#pack, start: this.#length, length: bytes.length };
    this.#length += bytes.length;
    this.#isDirty = true;
    return place;
  }

  /** Writes a content, compressed if that makes it smaller. */
  writeOne(bytes: Uint8Array): PackLocation {
    const packed = bytes.length < leastCompressed ? bytes : compressed(bytes);
    const isSmaller = packed.length < bytes.length;
    return { ...this.write(isSmaller ? packed : bytes), codec: isSmaller ? 'zstd' : 'raw' };
  }

  /** Writes contents, compressed together if there are several and that makes them smaller. @returns their places by hash */
  writeGroup(members: readonly Small[]): ReadonlyMap<string, PackLocation> {
    const [first] = members;
    if (!first) return new Map();
    if (members.length === 1) return new Map([[first.hash, this.writeOne(first.bytes)]]);
    const whole = Buffer.concat(members.map(({ bytes }) => bytes));
    const packed = compressed(whole);
    const isSmaller = packed.length < whole.length;
    const { pack, start, length } = this.write(isSmaller ? packed : whole);
    const places = new Map<string, PackLocation>();
    let at = 0;
    for (const { hash, bytes } of members) {
      const end = at + bytes.length;
      // Shares of whole bytes, whose sum is the length of the group.
      const share = Math.floor((end * length) / whole.length) - Math.floor((at * length) / whole.length);
      const inGroup = { pack, start, length: share, codec: groupCodec(length, at) };
      places.set(hash, isSmaller ? inGroup : { pack, start: start + at, length: bytes.length, codec: 'raw' });
      at = end;
    }
    return places;
  }

  /** Makes written bytes durable. */
  sync(): void {
    if (this.#isDirty) fdatasyncSync(this.#required());
    this.#isDirty = false;
  }

  /** Writes the row of the last pack. */
  writeRow(): void {
    this.#database.run(
      'INSERT INTO packs (number, length) VALUES (?, ?) ON CONFLICT (number) DO UPDATE SET length = excluded.length',
      ...[this.#pack, this.#length],
    );
  }

  /** Begins another pack, after the full one is durable and has its row. */
  next(): void {
    this.sync();
    this.writeRow();
    this.#pack += 1;
    this.#length = 0;
    this.close();
    this.#openPack();
  }

  #openPack(): void {
    const file = join(this.#directory, nameOfPack(this.#pack));
    this.#fd = openSync(file, O_RDWR | O_CREAT | O_NOFOLLOW, 0o600);
  }

  #required(): number {
    if (this.#fd === undefined) throw new CheckpointError('the store is closed');
    return this.#fd;
  }
}

/** The library reserves as many bytes as its options name. */
function compressed(bytes: Uint8Array): Buffer {
  return zstdCompressSync(bytes, {
    chunkSize: Math.max(leastChunkBytes, bytes.length >> 1),
    pledgedSrcSize: bytes.length,
    params: { [zlib.ZSTD_c_compressionLevel]: 1 },
  });
}
