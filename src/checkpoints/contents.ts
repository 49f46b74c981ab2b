import { createHash } from 'node:crypto';
import { closeSync, constants, openSync, readdirSync, readSync, rmSync, writeSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { constants as zlib, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import type { CheckpointDatabase } from './database.ts';
import { CheckpointError } from './errors.ts';
import { packBytes } from './limits.ts';

const hashOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
const compression = { params: { [zlib.ZSTD_c_compressionLevel]: 1 } };
/** Smaller pieces are not worth the attempt. */
const leastCompressed = 64;
/** A smaller pack is not written anew, however little of it is needed. */
const leastSparseBytes = 16 * 2 ** 20;

interface NewBlob {
  readonly hash: string;
  readonly pack: number;
  readonly start: number;
  readonly length: number;
  readonly size: number;
  readonly codec: 'raw' | 'zstd' | 'list';
  readonly pieces: readonly string[];
}

/**
 * Contents by their SHA-256, each stored once, in packs that only grow. New ones are in the pack before their rows are committed, so
 * a crash leaves a tail that no row needs: it is cut off at the next start.
 */
export class Contents {
  readonly #directory: string;
  readonly #database: CheckpointDatabase;
  /** Stored since the last commit. */
  readonly #fresh = new Map<string, NewBlob>();
  #pack = 1;
  #length = 0;
  #handle: FileHandle | undefined;
  #isDirty = false;

  /** @param directory for the packs; it exists */
  constructor(directory: string, database: CheckpointDatabase) {
    this.#directory = directory;
    this.#database = database;
  }

  /** Cuts off what no commit has, and removes packs without a row. */
  async open(): Promise<void> {
    const packs = this.#database.all('SELECT number, length FROM packs ORDER BY number');
    const known = new Set(packs.map((row) => nameOfPack(Number(row['number']))));
    for (const name of readdirSync(this.#directory)) {
      if (!known.has(name)) rmSync(join(this.#directory, name), { force: true });
    }
    const last = packs.at(-1);
    this.#pack = Number(last?.['number'] ?? 1);
    this.#length = Number(last?.['length'] ?? 0);
    await this.#openPack();
    await this.#handle?.truncate(this.#length);
  }

  /** Stores one piece. @returns its hash */
  async put(bytes: Uint8Array): Promise<string> {
    const hash = hashOf(bytes);
    if (this.#has(hash)) return hash;
    const packed = bytes.length < leastCompressed ? bytes : zstdCompressSync(bytes, compression);
    const isSmaller = packed.length < bytes.length;
    await this.#append(isSmaller ? packed : bytes, {
      hash,
      size: bytes.length,
      codec: isSmaller ? 'zstd' : 'raw',
      pieces: [],
    });
    return hash;
  }

  /** Stores the list of a long content's pieces. @returns its hash */
  async putList(pieces: readonly string[], size: number): Promise<string> {
    const bytes = Buffer.from(`list\n${pieces.join('')}`);
    const hash = hashOf(bytes);
    if (!this.#has(hash)) await this.#append(bytes, { hash, size, codec: 'list', pieces });
    return hash;
  }

  /** Makes the new contents durable. Their rows follow in `commit`. */
  async flush(): Promise<void> {
    if (this.#isDirty) await this.#handle?.datasync();
    this.#isDirty = false;
  }

  /** Writes the rows of the new contents, in the transaction of the caller. */
  commit(): void {
    for (const { hash, pack, start, length, size, codec, pieces } of this.#fresh.values()) {
      this.#database.run(
        'INSERT OR IGNORE INTO blobs (hash, pack, start, length, size, codec) VALUES (?, ?, ?, ?, ?, ?)',
        ...[hash, pack, start, length, size, codec],
      );
      for (const [number, piece] of pieces.entries()) {
        this.#database.run('INSERT OR IGNORE INTO pieces (list, number, hash) VALUES (?, ?, ?)', hash, number, piece);
      }
    }
    if (this.#fresh.size > 0) {
      this.#database.run(
        'INSERT INTO packs (number, length) VALUES (?, ?) ON CONFLICT (number) DO UPDATE SET length = excluded.length',
        ...[this.#pack, this.#length],
      );
    }
  }

  /** The commit is done: the next contents are new ones. */
  settle(): void {
    this.#fresh.clear();
  }

  /** Forgets what no commit has. */
  async discard(): Promise<void> {
    this.#fresh.clear();
    await this.#handle?.close();
    this.#handle = undefined;
    await this.open();
  }

  /** Reads a content piece by piece, each verified. @throws CheckpointError for a damaged or missing one */
  *read(hash: string): Generator<Buffer> {
    const row = this.#rowOf(hash);
    if (row['codec'] !== 'list') {
      yield this.#readBlob(hash, row);
      return;
    }
    for (const piece of this.#database.all('SELECT hash FROM pieces WHERE list = ? ORDER BY number', hash)) {
      const own = String(piece['hash']);
      yield this.#readBlob(own, this.#rowOf(own));
    }
  }

  /** Bytes of all contents that are needed. */
  get storedBytes(): number {
    return Number(this.#database.get('SELECT total(length) AS bytes FROM blobs WHERE refs > 0')?.['bytes'] ?? 0);
  }

  /** Deletes contents that nothing needs, and packs that are mostly unused; what is left of those moves to the last one. */
  async clean(pause: () => Promise<void>): Promise<void> {
    const database = this.#database;
    for (let removed = 1; removed > 0; ) {
      database.transaction(() => {
        const lists = "SELECT hash FROM blobs WHERE refs <= 0 AND codec = 'list'";
        database.run(`DELETE FROM pieces WHERE list IN (${lists})`);
        removed = database.run('DELETE FROM blobs WHERE refs <= 0').changes;
      });
      await pause();
    }
    const live = Number(
      database.get('SELECT total(length) AS bytes FROM blobs WHERE pack = ?', this.#pack)?.['bytes'] ?? 0,
    );
    if (this.#length > leastSparseBytes && this.#length > 2 * live) await this.#nextPack();
    const sparse = database.all(
      `SELECT number FROM packs WHERE number <> ? AND length > 2 * (SELECT total(length) FROM blobs WHERE pack = number)`,
      this.#pack,
    );
    for (const row of sparse) await this.#dissolve(Number(row['number']), pause);
  }

  async close(): Promise<void> {
    await this.#handle?.close();
    this.#handle = undefined;
  }

  #has(hash: string): boolean {
    return this.#fresh.has(hash) || this.#database.get('SELECT 1 FROM blobs WHERE hash = ?', hash) !== undefined;
  }

  async #append(bytes: Uint8Array, blob: Pick<NewBlob, 'hash' | 'size' | 'codec' | 'pieces'>): Promise<void> {
    if (this.#length + bytes.length > packBytes && this.#length > 0) await this.#nextPack();
    const { fd } = this.#required();
    for (let done = 0; done < bytes.length; ) {
      done += writeSync(fd, bytes, done, bytes.length - done, this.#length + done);
    }
    this.#fresh.set(blob.hash, { ...blob, pack: this.#pack, start: this.#length, length: bytes.length });
    this.#length += bytes.length;
    this.#isDirty = true;
  }

  /** The full pack is durable and has its row before the next one begins. */
  async #nextPack(): Promise<void> {
    await this.flush();
    this.#database.run(
      'INSERT INTO packs (number, length) VALUES (?, ?) ON CONFLICT (number) DO UPDATE SET length = excluded.length',
      ...[this.#pack, this.#length],
    );
    this.#pack += 1;
    this.#length = 0;
    await this.#handle?.close();
    await this.#openPack();
  }

  async #openPack(): Promise<void> {
    const flags = constants.O_RDWR | constants.O_CREAT | (constants.O_NOFOLLOW ?? 0);
    this.#handle = await open(join(this.#directory, nameOfPack(this.#pack)), flags, 0o600);
  }

  #required(): FileHandle {
    if (!this.#handle) throw new CheckpointError('the store is closed');
    return this.#handle;
  }

  #rowOf(hash: string): Readonly<Record<string, unknown>> {
    const fresh = this.#fresh.get(hash);
    const row = fresh ? { ...fresh } : this.#database.get('SELECT * FROM blobs WHERE hash = ?', hash);
    if (!row) throw new CheckpointError('a content is missing in the store');
    return row;
  }

  #readBlob(hash: string, row: Readonly<Record<string, unknown>>): Buffer {
    const [pack, start, length] = [Number(row['pack']), Number(row['start']), Number(row['length'])];
    const bytes = Buffer.allocUnsafe(length);
    const fd = pack === this.#pack ? this.#required().fd : openSync(join(this.#directory, nameOfPack(pack)), 'r');
    try {
      for (let done = 0; done < length; ) {
        const read = readSync(fd, bytes, done, length - done, start + done);
        if (read === 0) throw new CheckpointError('a pack of the store is cut off');
        done += read;
      }
    } finally {
      if (pack !== this.#pack) closeSync(fd);
    }
    const content = row['codec'] === 'zstd' ? zstdDecompressSync(bytes) : bytes;
    if (hashOf(content) !== hash) throw new CheckpointError('a content of the store is damaged');
    return content;
  }

  async #dissolve(pack: number, pause: () => Promise<void>): Promise<void> {
    const moved: { readonly hash: string; readonly start: number; readonly pack: number }[] = [];
    for (const row of this.#database.all('SELECT * FROM blobs WHERE pack = ?', pack)) {
      const bytes = this.#rawBytes(row);
      if (this.#length + bytes.length > packBytes && this.#length > 0) await this.#nextPack();
      writeSync(this.#required().fd, bytes, 0, bytes.length, this.#length);
      moved.push({ hash: String(row['hash']), pack: this.#pack, start: this.#length });
      this.#length += bytes.length;
      this.#isDirty = true;
      await pause();
    }
    await this.flush();
    this.#database.transaction(() => {
      for (const { hash, start, pack: to } of moved)
        this.#database.run('UPDATE blobs SET pack = ?, start = ? WHERE hash = ?', to, start, hash);
      this.#database.run(
        'INSERT INTO packs (number, length) VALUES (?, ?) ON CONFLICT (number) DO UPDATE SET length = excluded.length',
        ...[this.#pack, this.#length],
      );
      this.#database.run('DELETE FROM packs WHERE number = ?', pack);
    });
    rmSync(join(this.#directory, nameOfPack(pack)), { force: true });
  }

  #rawBytes(row: Readonly<Record<string, unknown>>): Buffer {
    const bytes = Buffer.allocUnsafe(Number(row['length']));
    const fd = openSync(join(this.#directory, nameOfPack(Number(row['pack']))), 'r');
    try {
      if (readSync(fd, bytes, 0, bytes.length, Number(row['start'])) !== bytes.length)
        throw new CheckpointError('a pack of the store is cut off');
      return bytes;
    } finally {
      closeSync(fd);
    }
  }
}

const nameOfPack = (number: number): string => `${String(number).padStart(6, '0')}.pack`;
