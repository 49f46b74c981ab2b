import { lstatSync, readdirSync, type Stats } from 'node:fs';
import { type BytePath, childOf } from './byte-path.ts';
import type { EntryKind, SkipReason } from './entry.ts';
import { CheckpointError, codeOf } from './errors.ts';
import { racyMs } from './limits.ts';
import type { Pacer } from './pacer.ts';
import { pathsBelow, SeenDirectory, type StatIndex } from './stat-index.ts';
import type { Tree } from './tree.ts';

/** An entry whose facts differ from the last checkpoint. */
export interface Candidate {
  readonly path: BytePath;
  readonly kind: EntryKind;
  readonly mode: number;
  readonly size: number;
  readonly mtime: number;
  /** Null: too young to prove anything. */
  readonly ctime: number | null;
  readonly ino: number;
  /** Why it is not covered. */
  readonly reason?: SkipReason;
}

export interface Scan {
  readonly index: StatIndex;
  readonly candidates: readonly Candidate[];
  /** Paths of the last checkpoint that are missing. */
  readonly gone: readonly BytePath[];
  readonly entries: number;
  /** Bytes of the files. */
  readonly bytes: number;
}

export interface ScanOptions {
  readonly tree: Tree;
  readonly known: StatIndex;
  readonly pacer: Pacer | undefined;
  readonly maxEntries: number;
  /** Directories that are left out, and named. */
  readonly leftOut: ReadonlySet<BytePath>;
  /** Paths that do not count as part of the tree: our own state. */
  readonly omitted: ReadonlySet<BytePath>;
}

/** The tree has more entries than the limit. */
export class TooManyEntries extends CheckpointError {}

/** Names that no checkpoint covers, at any depth: git's own data, and ours. */
const excluded = new Set(['.git', '.oratorio']);
const entriesPerCheck = 32;

/**
 * Compares the facts of every entry of a tree with the last checkpoint. Reads no file. A directory that is unchanged is not read
 * again, only the facts of its entries are.
 *
 * @throws TooManyEntries; the system's error when the root cannot be read
 */
export async function scan(options: ScanOptions): Promise<Scan> {
  const { tree, pacer } = options;
  const walk = new Walk(options);
  const root = lstatSync(tree.plain(''));
  if (!root.isDirectory()) throw new CheckpointError('the workspace is no directory');
  walk.begin(root);
  let count = 0;
  for (let directory = walk.next(); directory !== undefined; directory = walk.next()) {
    for (const step of walk.look(directory)) {
      count += step;
      if (pacer && count % entriesPerCheck === 0 && pacer.isDue) await pacer.pause();
    }
  }
  return walk.result();
}

class Walk {
  readonly #options: ScanOptions;
  readonly #startedAt = Date.now();
  readonly #index: StatIndex = new Map();
  readonly #candidates: Candidate[] = [];
  readonly #gone: BytePath[] = [];
  readonly #pending: { readonly path: BytePath; readonly stats: Stats }[] = [];
  #device = 0;
  #entries = 0;
  #bytes = 0;

  constructor(options: ScanOptions) {
    this.#options = options;
  }

  begin(root: Stats): void {
    this.#device = root.dev;
    this.#pending.push({ path: '', stats: root });
    const known = this.#options.known.get('');
    const { mtime, ctime, ino } = this.#stampOf(root);
    if (!known || known.mtime !== mtime || known.ctime !== ctime || known.ino !== ino) {
      this.#candidates.push({ path: '', kind: 'directory', mode: root.mode & 0o7777, size: 0, mtime, ctime, ino });
    }
  }

  next(): { readonly path: BytePath; readonly stats: Stats } | undefined {
    return this.#pending.pop();
  }

  result(): Scan {
    return {
      index: this.#index,
      candidates: this.#candidates,
      gone: this.#gone,
      entries: this.#entries,
      bytes: this.#bytes,
    };
  }

  /** Compares the entries of one directory; yields after each. */
  *look({ path, stats }: { readonly path: BytePath; readonly stats: Stats }): Generator<1> {
    const { tree, known } = this.#options;
    const before = known.get(path);
    const { mtime, ctime, ino } = this.#stampOf(stats);
    const self = { mtime, ctime: ctime ?? Number.NaN, ino };
    const isUnchanged = before?.mtime === mtime && before.ctime === self.ctime && before.ino === ino;
    const names = isUnchanged ? before.names : this.#namesIn(path);
    if (names === undefined) {
      this.#skip(path, stats, 'unreadable');
      return;
    }
    const seen = new SeenDirectory(self, names);
    this.#index.set(path, seen);
    const base = path === '' ? '' : `${path}/`;
    for (let at = 0; at < names.length; at += 1) {
      const name = names[at] ?? '';
      const child = base + name;
      let found: Stats | undefined;
      try {
        found = lstatSync(tree.plain(child), { throwIfNoEntry: false });
      } catch (error) {
        if (codeOf(error) !== 'EACCES') throw error;
        // Its names can be read, and nothing else of it.
        this.#index.delete(path);
        this.#skip(path, stats, 'unreadable');
        return;
      }
      yield 1;
      if (!found) {
        // Gone since the directory was read; the next scan reads it again.
        seen.set(at, { kind: 'skipped', mode: 0, size: 0, mtime: 0, ctime: Number.NaN, ino: 0 });
        this.#missing(child, before, name);
        continue;
      }
      this.#count(found);
      const index = isUnchanged ? at : (before?.indexOf(name) ?? -1);
      this.#note(child, found, seen, at, before, index);
    }
    if (before && !isUnchanged) {
      for (const name of before.names) if (seen.indexOf(name) === -1) this.#missing(childOf(path, name), before, name);
    }
  }

  #note(
    path: BytePath,
    stats: Stats,
    seen: SeenDirectory,
    at: number,
    before: SeenDirectory | undefined,
    index: number,
  ): void {
    const { leftOut } = this.#options;
    const { mtime, ctime, ino } = this.#stampOf(stats);
    const reason = leftOut.has(path) ? 'overLimit' : this.#reasonOf(stats);
    const kind = reason ? 'skipped' : kindOf(stats);
    const mode = kind === 'link' ? 0 : stats.mode & 0o7777;
    const size = kind === 'directory' ? 0 : stats.size;
    // An entry that changes its kind has another inode.
    if (before && index >= 0 && ctime !== null && before.equals(index, mode, size, mtime, ctime, ino)) {
      seen.copy(at, before, index);
      if (before.kindAt(index) === 'skipped' && kind !== 'skipped') return;
      if (kind === 'directory') this.#pending.push({ path, stats });
      return;
    }
    if (before && index >= 0 && before.kindAt(index) === 'directory' && kind !== 'directory') {
      for (const each of pathsBelow(this.#options.known, path)) if (each !== path) this.#gone.push(each);
    }
    seen.set(at, { kind, mode, size, mtime, ctime: ctime ?? Number.NaN, ino });
    this.#candidates.push({ path, kind, mode, size, mtime, ctime, ino, ...(reason && { reason }) });
    if (kind === 'directory') this.#pending.push({ path, stats });
  }

  #missing(path: BytePath, before: SeenDirectory | undefined, name: BytePath): void {
    const index = before?.indexOf(name) ?? -1;
    if (!before || index === -1) return;
    this.#gone.push(...(before.kindAt(index) === 'directory' ? pathsBelow(this.#options.known, path) : [path]));
  }

  /** A directory that cannot be read: nothing is known of what is in it. */
  #skip(path: BytePath, stats: Stats, reason: SkipReason): void {
    const known = this.#options.known;
    for (const each of pathsBelow(known, path)) if (each !== path) this.#gone.push(each);
    const at = this.#candidates.findIndex((each) => each.path === path);
    if (at !== -1) this.#candidates.splice(at, 1);
    const { mtime, ino } = this.#stampOf(stats);
    this.#candidates.push({
      path,
      kind: 'skipped',
      mode: stats.mode & 0o7777,
      size: 0,
      mtime,
      ctime: null,
      ino,
      reason,
    });
  }

  #namesIn(path: BytePath): readonly BytePath[] | undefined {
    try {
      // One character a byte, and names stay apart that UTF-8 would fold.
      const names = readdirSync(this.#options.tree.plain(path), { encoding: 'latin1' });
      const { omitted } = this.#options;
      return names.filter((name) => !excluded.has(name) && !omitted.has(childOf(path, name)));
    } catch (error) {
      if (path === '') throw error;
      if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return [];
      return undefined;
    }
  }

  #count({ mode, size }: Stats): void {
    this.#entries += 1;
    if ((mode & typeMask) === fileType) this.#bytes += size;
    if (this.#entries > this.#options.maxEntries) {
      throw new TooManyEntries(`the workspace has more than ${this.#options.maxEntries} files and directories`);
    }
  }

  #reasonOf(stats: Stats): SkipReason | undefined {
    if (stats.dev !== this.#device) return 'otherFileSystem';
    if (stats.isFile() || stats.isDirectory() || stats.isSymbolicLink()) return undefined;
    return 'special';
  }

  #stampOf({ mtimeMs, ctimeMs, ino }: Stats): {
    readonly mtime: number;
    readonly ctime: number | null;
    readonly ino: number;
  } {
    return { mtime: mtimeMs, ctime: ctimeMs >= this.#startedAt - racyMs ? null : ctimeMs, ino };
  }
}

const typeMask = 0o170000;
const fileType = 0o100000;

function kindOf(stats: Stats): EntryKind {
  if (stats.isFile()) return 'file';
  return stats.isDirectory() ? 'directory' : 'link';
}
