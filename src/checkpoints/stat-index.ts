import { type BytePath, childOf, isAscii, nameOf, parentOf } from './byte-path.ts';
import type { EntryKind, StampedEntry } from './entry.ts';

/** One entry of a directory at the last scan. */
export interface Seen {
  readonly kind: EntryKind;
  readonly mode: number;
  readonly size: number;
  readonly mtime: number;
  /** NaN: too recent to prove anything, so it equals no other. */
  readonly ctime: number;
  readonly ino: number;
}

const kinds: readonly EntryKind[] = ['file', 'directory', 'link', 'skipped'];
const width = 6;

/** A directory with its entries: names, and six numbers a name, because objects would take ten times the room. */
export class SeenDirectory {
  readonly mtime: number;
  readonly ctime: number;
  readonly ino: number;
  readonly names: readonly BytePath[];
  /** All names are ASCII. */
  readonly isPlain: boolean;
  readonly #numbers: Float64Array;
  #places: Map<BytePath, number> | undefined;

  constructor(self: Pick<Seen, 'mtime' | 'ctime' | 'ino'>, names: readonly BytePath[], from?: SeenDirectory) {
    this.mtime = self.mtime;
    this.ctime = self.ctime;
    this.ino = self.ino;
    this.names = names;
    this.isPlain = from?.isPlain ?? names.every(isAscii);
    this.#numbers = from ? from.#numbers.slice() : new Float64Array(names.length * width);
  }

  /** Returns a copy that can be changed. */
  clone(): SeenDirectory {
    return new SeenDirectory(this, this.names, this);
  }

  set(index: number, { kind, mode, size, mtime, ctime, ino }: Seen): void {
    this.#numbers.set([kinds.indexOf(kind), mode, size, mtime, ctime, ino], index * width);
  }

  at(index: number): Seen {
    const [kind = 0, mode = 0, size = 0, mtime = 0, ctime = Number.NaN, ino = 0] = this.#numbers.subarray(
      index * width,
      index * width + width,
    );
    return { kind: kinds[kind] ?? 'skipped', mode, size, mtime, ctime, ino };
  }

  kindAt(index: number): EntryKind {
    return kinds[this.#numbers[index * width] ?? 3] ?? 'skipped';
  }

  /** Whether an entry still has these facts. */
  equals(index: number, mode: number, size: number, mtime: number, ctime: number, ino: number): boolean {
    const numbers = this.#numbers;
    const at = index * width;
    return (
      numbers[at + 5] === ino &&
      numbers[at + 4] === ctime &&
      numbers[at + 3] === mtime &&
      numbers[at + 2] === size &&
      numbers[at + 1] === mode
    );
  }

  copy(index: number, from: SeenDirectory, fromIndex: number): void {
    this.#numbers.set(from.#numbers.subarray(fromIndex * width, fromIndex * width + width), index * width);
  }

  /** Place of a name; -1: missing. */
  indexOf(name: BytePath): number {
    this.#places ??= new Map(this.names.map((each, index) => [each, index]));
    return this.#places.get(name) ?? -1;
  }
}

/** All directories of a tree by path: a cache of the newest checkpoint, which proves that an entry is unchanged. */
export type StatIndex = Map<BytePath, SeenDirectory>;

/** Makes the index from the entries of the newest checkpoint. */
export function indexOf(entries: Iterable<StampedEntry>): StatIndex {
  const children = new Map<BytePath, StampedEntry[]>();
  const directories: StampedEntry[] = [];
  for (const entry of entries) {
    if (entry.kind === 'directory') directories.push(entry);
    const parent = parentOf(entry.path);
    if (parent === undefined) continue;
    const siblings = children.get(parent);
    if (siblings) siblings.push(entry);
    else children.set(parent, [entry]);
  }
  const index: StatIndex = new Map();
  for (const directory of directories) {
    const own = children.get(directory.path) ?? [];
    const seen = new SeenDirectory(
      seenOf(directory),
      own.map(({ path }) => nameOf(path)),
    );
    for (const [at, entry] of own.entries()) {
      const facts = seenOf(entry);
      // The limits may have changed since then.
      seen.set(at, entry.kind === 'skipped' ? { ...facts, ctime: Number.NaN } : facts);
    }
    index.set(directory.path, seen);
  }
  return index;
}

export const seenOf = ({
  kind,
  mode,
  size,
  mtime,
  ctime,
  ino,
}: Omit<StampedEntry, 'path' | 'hash' | 'target'>): Seen => ({
  ...{ kind, mode, size, mtime, ino },
  ctime: ctime ?? Number.NaN,
});

/** Every path at and below a directory of the index. */
export function* pathsBelow(index: StatIndex, directory: BytePath): Generator<BytePath> {
  yield directory;
  const seen = index.get(directory);
  for (const [at, name] of (seen?.names ?? []).entries()) {
    const path = childOf(directory, name);
    if (seen?.kindAt(at) === 'directory' && index.has(path)) yield* pathsBelow(index, path);
    else yield path;
  }
}
