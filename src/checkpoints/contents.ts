import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { ContentReader, hashOf, isInGroup, nameOfPack } from './content-reader.ts';
import type { CheckpointDatabase, Row } from './database.ts';
import { CheckpointError } from './errors.ts';
import { groupBytes, groupContents, smallBytes } from './limits.ts';
import { type PackLocation, PackWriter, type Small } from './pack-writer.ts';

/** A smaller pack is never rewritten, even if little of it is needed. */
const leastSparseBytes = 16 * 2 ** 20;

interface NewBlob {
  readonly hash: string;
  readonly size: number;
  readonly pieces: readonly string[];
  /** Undefined: the content's group is not written yet. */
  readonly place: PackLocation | undefined;
}

/**
 * Contents by their SHA-256, each stored once, in packs that only grow. New ones are in the pack before their rows are committed, so
 * a crash leaves a tail that no row needs: it is cut off at the next start. Small ones are compressed together.
 */
export class Contents extends ContentReader {
  readonly #packs: PackWriter;
  /** Contents stored since the last commit. */
  readonly #fresh = new Map<string, NewBlob>();
  /** Members of the next group. */
  #small: Small[] = [];
  #smallBytes = 0;
  /** True while nothing is committed: no lookup of a new content is needed. */
  #isEmpty = false;

  /** @param directory of the packs */
  constructor(directory: string, database: CheckpointDatabase) {
    super(directory, database);
    this.#packs = new PackWriter(directory, database);
  }

  /** Truncates the last pack to its committed length, and removes packs without a row. */
  open(): void {
    this.#isEmpty = this.database.get('SELECT 1 FROM blobs LIMIT 1') === undefined;
    this.#packs.open();
  }

  /** Stores one piece. @returns its hash */
  put(bytes: Uint8Array): string {
    const hash = hashOf(bytes);
    if (this.#has(hash)) return hash;
    const blob = { hash, size: bytes.length, pieces: [] };
    if (bytes.length > smallBytes) {
      this.#fresh.set(hash, { ...blob, place: this.#packs.writeOne(bytes) });
      return hash;
    }
    this.#fresh.set(hash, { ...blob, place: undefined });
    this.#small.push({ hash, bytes });
    this.#smallBytes += bytes.length;
    if (this.#smallBytes >= groupBytes || this.#small.length >= groupContents) this.#writeSmall();
    return hash;
  }

  /** Stores the list of a long content's pieces. @returns its hash */
  putList(pieces: readonly string[], size: number): string {
    const bytes = Buffer.from(`list\n${pieces.join('')}`);
    const hash = hashOf(bytes);
    if (!this.#has(hash)) {
      this.#fresh.set(hash, { hash, size, pieces, place: { ...this.#packs.write(bytes), codec: 'list' } });
    }
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
    this.#writeSmall();
    this.#packs.sync();
  }

  /** Writes the rows of the new contents, in the transaction of the caller. */
  commit(): void {
    if (this.#small.length > 0) this.flush();
    // In the order of the table, so that each of its pages is visited once.
    for (const blob of [...this.#fresh.values()].sort((a, b) => (a.hash < b.hash ? -1 : 1))) {
      const { hash, size, pieces } = blob;
      const { pack, start, length, codec } = placeOf(blob);
      this.database.run(
        'INSERT OR IGNORE INTO blobs (hash, pack, start, length, size, codec) VALUES (?, ?, ?, ?, ?, ?)',
        ...[hash, pack, start, length, size, codec],
      );
      for (const [number, piece] of pieces.entries()) {
        this.database.run('INSERT OR IGNORE INTO pieces (list, number, hash) VALUES (?, ?, ?)', hash, number, piece);
      }
    }
    if (this.#fresh.size > 0) this.#packs.writeRow();
  }

  /** Ends a commit: the next contents are new ones. */
  settle(): void {
    if (this.#fresh.size > 0) this.#isEmpty = false;
    this.#fresh.clear();
  }

  /** Drops contents that were not committed. */
  discard(): void {
    this.close();
    this.open();
  }

  /** Bytes of all needed contents. */
  get storedBytes(): number {
    return Number(this.database.get('SELECT total(length) AS bytes FROM blobs WHERE refs > 0')?.['bytes'] ?? 0);
  }

  /** Deletes unused contents, and packs that are mostly unused; the used contents of those packs move to the last one. */
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
      database.get('SELECT total(length) AS bytes FROM blobs WHERE pack = ?', this.#packs.pack)?.['bytes'] ?? 0,
    );
    if (this.#packs.length > leastSparseBytes && this.#packs.length > 2 * live) this.#packs.next();
    const sparse = database.all(
      `SELECT number FROM packs WHERE number <> ? AND length > 2 * (SELECT total(length) FROM blobs WHERE pack = number)`,
      this.#packs.pack,
    );
    const failures = sparse.flatMap((row) => this.#dissolve(Number(row['number'])) ?? []);
    if (failures[0]) throw failures[0];
  }

  close(): void {
    this.#fresh.clear();
    this.#small = [];
    this.#smallBytes = 0;
    this.forgetGroup();
    this.#packs.close();
  }

  protected override rowOf(hash: string): Row {
    const isWaiting = this.#fresh.has(hash) && this.#fresh.get(hash)?.place === undefined;
    if (isWaiting) this.#writeSmall();
    const fresh = this.#fresh.get(hash);
    return fresh ? { hash, size: fresh.size, ...placeOf(fresh) } : super.rowOf(hash);
  }

  protected override packed(row: Row): Buffer {
    return Number(row['pack']) === this.#packs.pack ? this.#packs.read(row) : super.packed(row);
  }

  #has(hash: string): boolean {
    if (this.#fresh.has(hash)) return true;
    return !this.#isEmpty && this.database.get('SELECT 1 FROM blobs WHERE hash = ?', hash) !== undefined;
  }

  /** Writes the collected group. */
  #writeSmall(): void {
    const members = this.#small;
    this.#small = [];
    this.#smallBytes = 0;
    for (const [hash, place] of this.#packs.writeGroup(members)) {
      const blob = this.#fresh.get(hash);
      if (blob) this.#fresh.set(hash, { ...blob, place });
    }
  }

  /** Moves the used contents of a pack to the last one. @returns the reason why the pack stays: a content of it is damaged */
  #dissolve(pack: number): CheckpointError | undefined {
    let moved: ReadonlyMap<string, PackLocation>;
    try {
      moved = this.#moveOut(pack);
    } catch (error) {
      // Drops the copies made so far.
      this.discard();
      if (error instanceof CheckpointError) return error;
      throw error;
    }
    this.#packs.sync();
    this.database.transaction(() => {
      for (const [hash, { start, length, codec, pack: to }] of moved) {
        const set = 'UPDATE blobs SET pack = ?, start = ?, length = ?, codec = ? WHERE hash = ?';
        this.database.run(set, to, start, length, codec, hash);
      }
      this.#packs.writeRow();
      this.database.run('DELETE FROM packs WHERE number = ?', pack);
    });
    rmSync(join(this.directory, nameOfPack(pack)), { force: true });
    return undefined;
  }

  /**
   * Copies the contents of a pack to the last one; those of groups into new groups, without removed ones.
   * @returns their places by hash
   */
  #moveOut(pack: number): ReadonlyMap<string, PackLocation> {
    const moved = new Map<string, PackLocation>();
    let members: Small[] = [];
    let bytes = 0;
    const writeMembers = () => {
      for (const [hash, place] of this.#packs.writeGroup(members)) moved.set(hash, place);
      [members, bytes] = [[], 0];
    };
    for (const row of this.database.all('SELECT * FROM blobs WHERE pack = ? ORDER BY start', pack)) {
      const hash = String(row['hash']);
      if (!isInGroup(row)) {
        moved.set(hash, { ...this.#packs.write(this.packed(row)), codec: String(row['codec']) });
        continue;
      }
      const content = this.verified(hash, row);
      members.push({ hash, bytes: content });
      bytes += content.length;
      if (bytes >= groupBytes || members.length >= groupContents) writeMembers();
    }
    writeMembers();
    return moved;
  }
}

/** @throws CheckpointError */
function placeOf({ place }: NewBlob): PackLocation {
  if (!place) throw new CheckpointError('a content is not written yet');
  return place;
}
