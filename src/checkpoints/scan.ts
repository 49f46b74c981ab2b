import { lstatSync, readdirSync, type Stats } from 'node:fs';
import { type BytePath, childOf } from './byte-path.ts';
import type { EntryKind, SkipReason } from './entry.ts';
import { CheckpointError, codeOf } from './errors.ts';
import { type CheckpointLimits, racyMs } from './limits.ts';
import { isSmallRepository } from './small-repository.ts';
import { pathsBelow, SeenDirectory, type StatIndex } from './stat-index.ts';
import type { Tree } from './tree.ts';

/** An entry whose facts differ from the last checkpoint. */
export interface Candidate {
  readonly path: BytePath;
  readonly kind: EntryKind;
  readonly mode: number;
  readonly size: number;
  readonly mtime: number;
  /** Null: too recent to prove anything. */
  readonly ctime: number | null;
  readonly ino: number;
  /** Reason why the entry is not covered. */
  readonly reason?: SkipReason;
}

export interface Scan {
  readonly index: StatIndex;
  readonly candidates: readonly Candidate[];
  /** Paths of the last checkpoint that are missing. */
  readonly gone: readonly BytePath[];
  readonly entries: number;
  /** Bytes of the files that are not too large. */
  readonly bytes: number;
  /** Directories below the root that have a `.git`. */
  readonly repositories: readonly BytePath[];
}

export interface ScanOptions {
  readonly tree: Tree;
  readonly known: StatIndex;
  readonly limits: Pick<CheckpointLimits, 'entries' | 'fileBytes' | 'contentBytes'>;
  /** Directories that are left out, and reported, with the bytes in them. */
  readonly leftOut: ReadonlyMap<BytePath, number>;
  /** Paths that do not count as part of the tree: our own state. */
  readonly omitted: ReadonlySet<BytePath>;
}

/** The tree has more entries, or more content, than the limit. */
export class OverLimit extends CheckpointError {}

/** Name of git's own data. The `.git` of the root does not belong to the tree: its state is saved apart. */
const gitName = '.git';
/** Name that no checkpoint covers, at any depth. */
export const ownName = '.oratorio';
/** Directory with the forks of workspaces below this one (`forksName` of the configuration). */
const forksName = '.oratorio-worktrees';
const gib = 2 ** 30;

/**
 * Compares the facts of every entry of a tree with the last checkpoint. Reads no file. In an unchanged directory it reads only the
 * facts of the entries, not their names.
 *
 * @throws OverLimit; the system's error when the root cannot be read
 */
export function scan(options: ScanOptions): Scan {
  const walk = new Walk(options);
  options.tree.beginWalk();
  const root = lstatSync(options.tree.plain(''));
  if (!root.isDirectory()) throw new CheckpointError('the workspace is not a directory');
  walk.begin(root);
  for (let directory = walk.next(); directory !== undefined; directory = walk.next()) walk.look(directory);
  return walk.result();
}

/** One directory while its entries are compared. */
interface Look {
  readonly path: BytePath;
  readonly before: SeenDirectory | undefined;
  /** Whether the directory has the same entries as `before`; their contents may differ. */
  readonly isUnchanged: boolean;
  /** `before` itself until an entry differs. */
  seen: SeenDirectory;
}

interface Pending {
  readonly path: BytePath;
  readonly stats: Stats;
}

class Walk {
  readonly #options: ScanOptions;
  readonly #racyFrom = Date.now() - racyMs;
  readonly #index: StatIndex = new Map();
  readonly #candidates: Candidate[] = [];
  readonly #gone: BytePath[] = [];
  readonly #repositories: BytePath[] = [];
  readonly #pending: Pending[] = [];
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

  next(): Pending | undefined {
    return this.#pending.pop();
  }

  result(): Scan {
    return {
      index: this.#index,
      candidates: this.#candidates,
      gone: this.#gone,
      entries: this.#entries,
      bytes: this.#bytes,
      repositories: this.#repositories,
    };
  }

  /** Compares the entries of one directory. */
  look({ path, stats }: Pending): void {
    const before = this.#options.known.get(path);
    const { mtime, ctime, ino } = this.#stampOf(stats);
    const self = { mtime, ctime: ctime ?? Number.NaN, ino };
    const isUnchanged = before?.mtime === mtime && before.ctime === self.ctime && before.ino === ino;
    const names = isUnchanged ? before.names : this.#namesIn(path);
    if (names === undefined) {
      this.#skip(path, stats, 'unreadable');
      return;
    }
    const look: Look = { path, before, isUnchanged, seen: isUnchanged ? before : new SeenDirectory(self, names) };
    this.#index.set(path, look.seen);
    const statsOf = this.#statsIn(path, look.seen);
    for (let at = 0; at < names.length; at += 1) {
      const name = names[at] ?? '';
      const found = statsOf(name);
      if (found === 'unreadable') {
        // Only the names in the directory can be read.
        this.#index.delete(path);
        this.#skip(path, stats, 'unreadable');
        return;
      }
      if (!found) {
        // Gone since the directory was read; the next scan reads it again.
        this.#ownSeen(look).set(at, { kind: 'skipped', mode: 0, size: 0, mtime: 0, ctime: Number.NaN, ino: 0 });
        this.#missing(childOf(path, name), before, name);
        continue;
      }
      this.#note(look, name, found, at);
    }
    if (before && !isUnchanged) {
      for (const name of before.names) {
        if (look.seen.indexOf(name) === -1) this.#missing(childOf(path, name), before, name);
      }
    }
  }

  /** Looks up entries of one directory, without turning each path into bytes where that is not needed. */
  #statsIn(path: BytePath, { isPlain }: SeenDirectory): (name: BytePath) => Stats | 'unreadable' | undefined {
    const { tree } = this.#options;
    const directory = tree.plain(path);
    const base = isPlain && typeof directory === 'string' ? `${directory}/` : undefined;
    return (name) => {
      try {
        return lstatSync(base === undefined ? tree.plain(childOf(path, name)) : base + name, noThrow);
      } catch (error) {
        if (codeOf(error) !== 'EACCES') throw error;
        return 'unreadable';
      }
    };
  }

  /** Facts of a directory that may be changed. Most directories share those of the last checkpoint. */
  #ownSeen(look: Look): SeenDirectory {
    if (look.isUnchanged && look.seen === look.before) {
      look.seen = look.before.clone();
      this.#index.set(look.path, look.seen);
    }
    return look.seen;
  }

  #note(look: Look, name: BytePath, stats: Stats, at: number): void {
    const { leftOut, known } = this.#options;
    const { path: directory, before, isUnchanged } = look;
    const index = isUnchanged ? at : (before?.indexOf(name) ?? -1);
    const left = leftOut.size > 0 ? leftOut.get(childOf(directory, name)) : undefined;
    const reason = left === undefined ? this.#reasonOf(stats, directory, name) : 'overLimit';
    const kind = reason ? 'skipped' : kindOf(stats.mode);
    const mode = kind === 'link' ? 0 : stats.mode & 0o7777;
    const isWhole = kind === 'directory' || reason === 'repository';
    const size = left ?? (isWhole ? 0 : stats.size);
    const { ctimeMs, ino } = stats;
    // The state of a repository is saved apart.
    const mtime = reason === 'repository' ? 0 : stats.mtimeMs;
    this.#count(kind, size);
    const isKnown = before !== undefined && index >= 0;
    if (isKnown && ctimeMs < this.#racyFrom && before.equals(index, mode, size, mtime, ctimeMs, ino)) {
      const wasKind = before.kindAt(index);
      // A file that is too large is known as skipped.
      if (wasKind === kind || (wasKind === 'skipped' && kind === 'file')) {
        if (!isUnchanged) look.seen.copy(at, before, index);
        if (kind === 'directory') this.#pending.push({ path: childOf(directory, name), stats });
        return;
      }
    }
    const path = childOf(directory, name);
    if (isKnown && before.kindAt(index) === 'directory' && kind !== 'directory') {
      for (const each of pathsBelow(known, path)) if (each !== path) this.#gone.push(each);
    }
    const ctime = ctimeMs < this.#racyFrom ? ctimeMs : null;
    this.#ownSeen(look).set(at, { kind, mode, size, mtime, ctime: ctime ?? Number.NaN, ino });
    this.#candidates.push({ path, kind, mode, size, mtime, ctime, ino, ...(reason && { reason }) });
    if (kind === 'directory') this.#pending.push({ path, stats });
  }

  #missing(path: BytePath, before: SeenDirectory | undefined, name: BytePath): void {
    const index = before?.indexOf(name) ?? -1;
    if (!before || index === -1) return;
    const isDirectory = before.kindAt(index) === 'directory';
    for (const each of isDirectory ? pathsBelow(this.#options.known, path) : [path]) this.#gone.push(each);
  }

  /** Records a directory that cannot be read: its entries are unknown. */
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
      // One character a byte, so that names stay apart that UTF-8 would fold.
      const names = readdirSync(this.#options.tree.plain(path), { encoding: 'latin1' });
      const { omitted } = this.#options;
      const isCovered = (name: BytePath) =>
        name !== ownName && name !== forksName && !(name === gitName && path === '');
      return names.filter((name) => isCovered(name) && !omitted.has(childOf(path, name)));
    } catch (error) {
      if (path === '') throw error;
      if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return [];
      return undefined;
    }
  }

  #count(kind: EntryKind, size: number): void {
    const { entries, fileBytes, contentBytes } = this.#options.limits;
    this.#entries += 1;
    if (this.#entries > entries) {
      throw new OverLimit(`the workspace has more than ${entries} files and directories`);
    }
    if (kind !== 'file' || size > fileBytes) return;
    this.#bytes += size;
    if (this.#bytes > contentBytes) {
      const most = contentBytes < gib ? `${contentBytes} bytes` : `${Math.round(contentBytes / gib)} GiB`;
      throw new OverLimit(`the files of the workspace have more than ${most}`);
    }
  }

  #reasonOf({ dev, mode }: Stats, directory: BytePath, name: BytePath): SkipReason | undefined {
    if (dev !== this.#device) return 'otherFileSystem';
    const kind = kindOf(mode);
    if (kind === 'skipped') return 'special';
    if (name !== gitName) return undefined;
    this.#repositories.push(directory);
    if (kind !== 'directory') return undefined;
    return isSmallRepository(this.#options.tree, childOf(directory, name)) ? undefined : 'repository';
  }

  #stampOf({ mtimeMs, ctimeMs, ino }: Stats): {
    readonly mtime: number;
    readonly ctime: number | null;
    readonly ino: number;
  } {
    return { mtime: mtimeMs, ctime: ctimeMs < this.#racyFrom ? ctimeMs : null, ino };
  }
}

const noThrow = { throwIfNoEntry: false } as const;
const typeMask = 0o170000;

function kindOf(mode: number): EntryKind {
  switch (mode & typeMask) {
    case 0o100000:
      return 'file';
    case 0o040000:
      return 'directory';
    case 0o120000:
      return 'link';
    default:
      return 'skipped';
  }
}
