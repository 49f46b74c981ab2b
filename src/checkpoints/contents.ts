import { closeSync, constants, fdatasyncSync, ftruncateSync, openSync, readdirSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { constants as zlib, zstdCompressSync } from 'node:zlib';
import { ContentReader, hashOf, nameOfPack, readFully } from './content-reader.ts';
import type { Row } from './database.ts';
import { CheckpointError } from './errors.ts';
import { packBytes } from './limits.ts';

/** Smaller pieces are not worth the attempt. */
const leastCompressed = 64;
const leastChunkBytes = 1_024;
/** A smaller pack is not written anew, however little of it is needed. */
const leastSparseBytes = 16 * 2 ** 20;
const { O_RDWR, O_CREAT, O_NOFOLLOW = 0 } = constants;

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
export class Contents extends ContentReader {
  /** Stored since the last commit. */
  readonly #fresh = new Map<string, NewBlob>();
  #pack = 1;
  #length = 0;
  #fd: number | undefined;
  #isDirty = false;
  /** Nothing is committed: a new content need not be looked for. */
  #isEmpty = false;

  /** Cuts off what no commit has, and removes packs without a row. */
  open(): void {
    const packs = this.database.all('SELECT number, length FROM packs ORDER BY number');
    const known = new Set(packs.map((row) => nameOfPack(Number(row['number']))));
    for (const name of readdirSync(this.directory)) {
      if (!known.has(name)) rmSync(join(this.directory, name), { force: true });
    }
    const last = packs.at(-1);
    this.#pack = Number(last?.['number'] ?? 1);
    this.#length = Number(last?.['length'] ?? 0);
    this.#isDirty = false;
    this.#isEmpty = this.database.get('SELECT 1 FROM blobs LIMIT 1') === undefined;
    this.#openPack();
    ftruncateSync(this.#required(), this.#length);
  }

  /** Stores one piece. @returns its hash */
  put(bytes: Uint8Array): string {
    const hash = hashOf(bytes);
    if (this.#has(hash)) return hash;
    const packed = bytes.length < leastCompressed ? bytes : compressed(bytes);
    const isSmaller = packed.length < bytes.length;
    this.#append(isSmaller ? packed : bytes, {
      hash,
      size: bytes.length,
      codec: isSmaller ? 'zstd' : 'raw',
      pieces: [],
    });
    return hash;
  }

  /** Stores the list of a long content's pieces. @returns its hash */
  putList(pieces: readonly string[], size: number): string {
    const bytes = Buffer.from(`list\n${pieces.join('')}`);
    const hash = hashOf(bytes);
    if (!this.#has(hash)) this.#append(bytes, { hash, size, codec: 'list', pieces });
    return hash;
  }

  /** Stores a content that comes in pieces, as a list if there are several. @returns its hash */
  putAll(pieces: Iterable<Uint8Array>, size: number): string {
    const hashes: string[] = [];
    for (const piece of pieces) hashes.push(this.put(piece));
    const [only = ''] = hashes;
    return hashes.length === 1 ? only : this.putList(hashes, size);
  }

  /** Makes the new contents durable. Their rows follow in `commit`. */
  flush(): void {
    if (this.#isDirty) fdatasyncSync(this.#required());
    this.#isDirty = false;
  }

  /** Writes the rows of the new contents, in the transaction of the caller. */
  commit(): void {
    // In the order of the table, so that each of its pages is visited once.
    for (const blob of [...this.#fresh.values()].sort((a, b) => (a.hash < b.hash ? -1 : 1))) {
      const { hash, pack, start, length, size, codec, pieces } = blob;
      this.database.run(
        'INSERT OR IGNORE INTO blobs (hash, pack, start, length, size, codec) VALUES (?, ?, ?, ?, ?, ?)',
        ...[hash, pack, start, length, size, codec],
      );
      for (const [number, piece] of pieces.entries()) {
        this.database.run('INSERT OR IGNORE INTO pieces (list, number, hash) VALUES (?, ?, ?)', hash, number, piece);
      }
    }
    if (this.#fresh.size > 0) this.#writePack();
  }

  /** The commit is done: the next contents are new ones. */
  settle(): void {
    if (this.#fresh.size > 0) this.#isEmpty = false;
    this.#fresh.clear();
  }

  /** Forgets what no commit has. */
  discard(): void {
    this.close();
    this.open();
  }

  /** Bytes of all contents that are needed. */
  get storedBytes(): number {
    return Number(this.database.get('SELECT total(length) AS bytes FROM blobs WHERE refs > 0')?.['bytes'] ?? 0);
  }

  /** Deletes contents that nothing needs, and packs that are mostly unused; what is left of those moves to the last one. */
  clean(): void {
    const { database } = this;
    for (let removed = 1; removed > 0; ) {
      database.transaction(() => {
        const lists = "SELECT hash FROM blobs WHERE refs <= 0 AND codec = 'list'";
        database.run(`DELETE FROM pieces WHERE list IN (${lists})`);
        removed = database.run('DELETE FROM blobs WHERE refs <= 0').changes;
      });
    }
    const live = Number(
      database.get('SELECT total(length) AS bytes FROM blobs WHERE pack = ?', this.#pack)?.['bytes'] ?? 0,
    );
    if (this.#length > leastSparseBytes && this.#length > 2 * live) this.#nextPack();
    const sparse = database.all(
      `SELECT number FROM packs WHERE number <> ? AND length > 2 * (SELECT total(length) FROM blobs WHERE pack = number)`,
      this.#pack,
    );
    for (const row of sparse) this.#dissolve(Number(row['number']));
  }

  close(): void {
    this.#fresh.clear();
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }

  protected override rowOf(hash: string): Row {
    const fresh = this.#fresh.get(hash);
    return fresh ? { ...fresh } : super.rowOf(hash);
  }

  protected override packed(row: Row): Buffer {
    return Number(row['pack']) === this.#pack ? readFully(this.#required(), row) : super.packed(row);
  }

  #has(hash: string): boolean {
    if (this.#fresh.has(hash)) return true;
    return !this.#isEmpty && this.database.get('SELECT 1 FROM blobs WHERE hash = ?', hash) !== undefined;
  }

  #append(bytes: Uint8Array, blob: Pick<NewBlob, 'hash' | 'size' | 'codec' | 'pieces'>): void {
    this.#fresh.set(blob.hash, { ...blob, ...this.#write(bytes), length: bytes.length });
  }

  /** Writes bytes behind the last ones. @returns their place */
  #write(bytes: Uint8Array): { readonly pack: number; readonly start: number } {
    if (this.#length + bytes.length > packBytes && this.#length > 0) this.#nextPack();
    const fd = this.#required();
    for (let done = 0; done < bytes.length; ) {
      done += writeSync(fd, bytes, done, bytes.length - done, this.#length + done);
    }
    const place = { pack: this.#pack, start: this.#length };
    this.#length += bytes.length;
    this.#isDirty = true;
    return place;
  }

  #writePack(): void {
    this.database.run(
      'INSERT INTO packs (number, length) VALUES (?, ?) ON CONFLICT (number) DO UPDATE SET length = excluded.length',
      ...[this.#pack, this.#length],
    );
  }

  /** The full pack is durable and has its row before the next one begins. */
  #nextPack(): void {
    this.flush();
    this.#writePack();
    this.#pack += 1;
    this.#length = 0;
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#openPack();
  }

  #openPack(): void {
    const file = join(this.directory, nameOfPack(this.#pack));
    this.#fd = openSync(file, O_RDWR | O_CREAT | O_NOFOLLOW, 0o600);
  }

  #required(): number {
    if (this.#fd === undefined) throw new CheckpointError('the store is closed');
    return this.#fd;
  }

  #dissolve(pack: number): void {
    const moved = this.database
      .all('SELECT * FROM blobs WHERE pack = ?', pack)
      .map((row) => ({ hash: String(row['hash']), ...this.#write(this.packed(row)) }));
    this.flush();
    this.database.transaction(() => {
      for (const { hash, start, pack: to } of moved)
        this.database.run('UPDATE blobs SET pack = ?, start = ? WHERE hash = ?', to, start, hash);
      this.#writePack();
      this.database.run('DELETE FROM packs WHERE number = ?', pack);
    });
    rmSync(join(this.directory, nameOfPack(pack)), { force: true });
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
