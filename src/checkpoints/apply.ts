import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmdirSync,
  type Stats,
  statSync,
  symlinkSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { type BytePath, depthOf, systemPath } from './byte-path.ts';
import type { Contents } from './contents.ts';
import type { RestoreOp } from './directories.ts';
import type { PathEntry } from './entry.ts';
import { CheckpointError, codeOf } from './errors.ts';
import { hashOfFile } from './hash-file.ts';
import { linkTarget, Tree } from './tree.ts';

export interface ApplyOptions {
  readonly tree: Tree;
  readonly contents: Contents;
  readonly ops: readonly RestoreOp[];
  /** Directories whose modes allow no new entries, with these modes: opened for the work. */
  readonly closed: ReadonlyMap<BytePath, number>;
  /** Called before each step that changes the disk; for tests. */
  readonly onStep?: ((step: string) => void) | undefined;
}

/** Results of a restore's operations. */
export interface Applied {
  /** Paths in their wanted state. */
  readonly done: readonly BytePath[];
  /** Paths that another program has changed since the plan: not touched. */
  readonly left: readonly BytePath[];
}

const ownDirectory = '.oratorio';
const stagingName = 'restore';
const staging = `${ownDirectory}/${stagingName}`;
const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW = 0 } = constants;

/** Removes the files that an earlier restore staged. */
export function clearStaging(tree: Tree): void {
  try {
    // Through descriptors, and not recursively: a repository may have put links there.
    for (const name of readdirSync(tree.at(`${staging}/.`), { encoding: 'latin1' })) {
      try {
        unlinkSync(tree.at(`${staging}/${name}`));
      } catch (error) {
        if (!isRefusal(error)) throw error;
      }
    }
    rmdirSync(tree.at(staging));
  } catch (error) {
    if (!isRefusal(error)) throw error;
  } finally {
    tree.close();
  }
}

/**
 * Writes all contents beside their places, on the same file system, so that applying only renames.
 * @throws CheckpointError for a damaged store
 */
export function stage({ tree, contents, ops, onStep }: ApplyOptions): void {
  clearStaging(tree);
  onStep?.('stage');
  makeOwnDirectory(tree);
  for (const [number, { want }] of ops.entries()) {
    if (want?.kind === 'file') stageFile(tree, contents, want, number);
    if (want?.kind === 'link') symlinkSync(systemPath(want.target ?? ''), tree.at(stagedName(number)));
  }
}

function makeOwnDirectory(tree: Tree): void {
  for (const path of [ownDirectory, staging]) {
    try {
      mkdirSync(tree.at(path), 0o700);
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error;
    }
    if (!lstatSync(tree.at(path)).isDirectory()) throw new CheckpointError(`${path} is not a directory`);
  }
}

const stagedName = (number: number): BytePath => `${staging}/${number}`;

function stageFile(tree: Tree, contents: Contents, { hash, mode }: PathEntry, number: number): void {
  const fd = openSync(tree.at(stagedName(number)), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  try {
    for (const piece of contents.read(hash ?? '')) {
      for (let done = 0; done < piece.length; ) done += writeSync(fd, piece, done);
    }
    // The umask reduces the mode given to `open`.
    fchmodSync(fd, mode);
  } finally {
    closeSync(fd);
  }
}

/**
 * Brings every path into its wanted state. Skips an operation that is already done, and leaves one whose path differs from the
 * plan: so a repeated call completes a restore that a crash has interrupted.
 */
export function apply(options: ApplyOptions): Applied {
  return new Application(options).run();
}

class Application {
  readonly #options: ApplyOptions;
  readonly #done = new Set<BytePath>();
  readonly #left = new Set<BytePath>();
  /** Holds the directory of the staged files while `tree` holds that of their places. */
  readonly #staged: Tree;

  constructor(options: ApplyOptions) {
    this.#options = options;
    this.#staged = new Tree(options.tree.root);
  }

  run(): Applied {
    const { ops, tree } = this.#options;
    const numbered = ops.map((op, number) => ({ ...op, number }));
    const byDepth = numbered.toSorted((a, b) => depthOf(a.path) - depthOf(b.path));
    try {
      // Modes of directories come last: a directory without `w` takes no entry.
      this.#openParents();
      for (const op of byDepth.toReversed()) this.#step(op, () => this.#remove(op));
      for (const op of byDepth) if (op.want?.kind === 'directory') this.#step(op, () => this.#makeDirectory(op));
      for (const op of byDepth) {
        if (op.want && op.want.kind !== 'directory') this.#step(op, () => this.#put(op, op.number));
      }
    } finally {
      this.#closeDirectories(byDepth);
      this.#staged.close();
      tree.close();
    }
    return { done: [...this.#done], left: [...this.#left] };
  }

  #step(op: RestoreOp, work: () => void): void {
    if (this.#left.has(op.path)) return;
    try {
      work();
    } catch (error) {
      if (!isRefusal(error)) throw error;
      this.#left.add(op.path);
    }
  }

  /** Removes an entry that has the wrong kind, or that is not wanted. */
  #remove(op: RestoreOp): void {
    const { path, have, want } = op;
    if (!have || (want && (want.kind === have.kind || (want.kind !== 'directory' && have.kind !== 'directory')))) {
      return;
    }
    const found = this.#stat(path);
    if (!found) {
      if (!want) this.#done.add(path);
      return;
    }
    if (want && this.#isWanted(op, found)) return;
    if (!this.#isPlanned(op, found)) {
      this.#left.add(path);
      return;
    }
    this.#note(`remove ${path}`);
    if (have.kind === 'directory') {
      this.#options.tree.close();
      rmdirSync(this.#options.tree.at(path));
    } else {
      unlinkSync(this.#options.tree.at(path));
    }
    if (!want) this.#done.add(path);
  }

  #makeDirectory(op: RestoreOp): void {
    const { path } = op;
    const found = this.#stat(path);
    if (!found) {
      this.#note(`mkdir ${path}`);
      mkdirSync(this.#options.tree.at(path), 0o700);
    } else if (!found.isDirectory()) {
      this.#left.add(path);
      return;
    }
    this.#done.add(path);
  }

  #put(op: RestoreOp, number: number): void {
    const { path, want } = op;
    const { tree } = this.#options;
    const found = this.#stat(path);
    if (found && this.#isWanted(op, found)) {
      this.#done.add(path);
      return;
    }
    if (found ? !op.have || !this.#isPlanned(op, found) : op.have && op.have.kind === want?.kind) {
      this.#left.add(path);
      return;
    }
    this.#note(`put ${path}`);
    renameSync(this.#staged.at(stagedName(number)), tree.at(path));
    this.#done.add(path);
  }

  #stat(path: BytePath): Stats | undefined {
    const place = this.#options.tree.at(path);
    // The place of the root is the descriptor itself.
    return path === '' ? statSync(place) : lstatSync(place, { throwIfNoEntry: false });
  }

  /** Whether a path has the state that the plan found. */
  #isPlanned({ have }: RestoreOp, found: Stats): boolean {
    if (!have) return false;
    if (have.kind === 'directory') return found.isDirectory();
    if (have.kind === 'link') return found.isSymbolicLink() && found.ino === have.ino;
    if (!found.isFile() || found.ino !== have.ino || found.size !== have.size) return false;
    return found.mtimeMs === have.mtime;
  }

  #isWanted({ path, want }: RestoreOp, found: Stats): boolean {
    if (!want) return false;
    if (want.kind === 'link') return found.isSymbolicLink() && linkTarget(this.#options.tree.at(path)) === want.target;
    if (want.kind === 'directory') return found.isDirectory();
    if (!found.isFile() || found.size !== want.size || (found.mode & 0o7777) !== want.mode) return false;
    return hashOfFile(this.#options.tree.at(path), found.size) === want.hash;
  }

  #openParents(): void {
    const { closed, tree } = this.#options;
    for (const [path, mode] of [...closed].sort(([a], [b]) => depthOf(a) - depthOf(b))) {
      try {
        if (this.#stat(path)?.isDirectory()) chmodSync(tree.at(path), mode | 0o700);
      } catch (error) {
        if (!isRefusal(error)) throw error;
      }
    }
  }

  /** Gives directories their modes, deepest first. */
  #closeDirectories(ops: readonly RestoreOp[]): void {
    const { tree, closed } = this.#options;
    const modes = new Map(closed);
    for (const { path, want } of ops) {
      if (want?.kind === 'directory' && this.#done.has(path)) modes.set(path, want.mode);
    }
    for (const [path, mode] of [...modes].sort(([a], [b]) => depthOf(b) - depthOf(a))) {
      try {
        const stats = this.#stat(path);
        if (stats?.isDirectory() && (stats.mode & 0o7777) !== mode) chmodSync(tree.at(path), mode);
      } catch (error) {
        if (!isRefusal(error)) throw error;
      }
    }
  }

  #note(step: string): void {
    this.#options.onStep?.(step);
  }
}

const refusals = new Set([
  'ENOENT',
  'ENOTDIR',
  'ELOOP',
  'ENOTEMPTY',
  'EEXIST',
  'EISDIR',
  'EACCES',
  'EPERM',
  'EBUSY',
  'EXDEV',
]);
/** Whether an error means that a path cannot be changed at present: the others are still restored, and this one is reported. */
const isRefusal = (error: unknown): boolean => refusals.has(codeOf(error) ?? '');
