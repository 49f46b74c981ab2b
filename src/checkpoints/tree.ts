import { closeSync, constants, existsSync, lstatSync, openSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type BytePath, childOf, nameOf, parentOf, systemPath } from './byte-path.ts';
import { CheckpointError, codeOf } from './errors.ts';

const { O_RDONLY, O_NOFOLLOW = 0, O_DIRECTORY = 0 } = constants;
/** Linux only, and not among Node's constants: holds a place, opens nothing, and needs no right to read (open(2)). */
const O_PATH = 0o10000000;
const descriptors = '/proc/self/fd';
const hasDescriptors = process.platform === 'linux' && existsSync(descriptors);

interface OpenDirectory {
  readonly path: BytePath;
  readonly fd: number;
}

/**
 * Reaches the entries of a tree through descriptors of their directories, each opened in the one above without following a link: a
 * directory that is swapped for a link leads nowhere. Elsewhere than on Linux the real path is compared instead.
 */
export class Tree {
  /** Canonical and absolute. */
  readonly root: string;
  readonly #rootBytes: BytePath;
  /** Prefix of the paths of `plain`. */
  #prefix: BytePath;
  /** Most recently used chain of directories, from the root. */
  #chain: OpenDirectory[] = [];

  constructor(root: string) {
    this.root = root;
    this.#rootBytes = Buffer.from(root).toString('latin1');
    this.#prefix = `${this.#rootBytes}/`;
  }

  /**
   * Path of an entry for system calls, valid until the next call.
   * @throws the system's error when a directory on the way is missing or is a link
   */
  at(path: BytePath): string | Buffer {
    const parent = parentOf(path);
    if (parent === undefined) return hasDescriptors ? this.#directory('') : this.root;
    const base = hasDescriptors ? this.#directory(parent) : this.#verified(parent);
    return systemPath(`${base}/${nameOf(path)}`);
  }

  /** Path without any check: only for reads. */
  plain(path: BytePath): string | Buffer {
    return systemPath(path === '' ? this.#rootBytes : this.#prefix + path);
  }

  /**
   * Begins a walk with `plain`. When the root is the working directory of the process, as for an agent server, its paths are
   * relative from then on: the system looks up fewer names for each, which is a tenth of a scan.
   */
  beginWalk(): void {
    this.#prefix = isWorkingDirectory(this.root) ? '' : `${this.#rootBytes}/`;
  }

  close(): void {
    for (const { fd } of this.#chain.splice(0)) closeSync(fd);
  }

  /** Path of an open directory. */
  #directory(path: BytePath): string {
    while (this.#chain.length > 0) {
      const last = this.#chain.at(-1);
      if (!last || last.path === path) break;
      if (last.path === '' || path.startsWith(`${last.path}/`)) break;
      closeSync(last.fd);
      this.#chain.pop();
    }
    if (this.#chain.length === 0) this.#hold('', this.root);
    for (let last = this.#chain.at(-1); last && last.path !== path; last = this.#chain.at(-1)) {
      const rest = path.slice(last.path === '' ? 0 : last.path.length + 1);
      const [name = ''] = rest.split('/');
      this.#hold(childOf(last.path, name), systemPath(`${descriptors}/${last.fd}/${name}`));
    }
    return `${descriptors}/${this.#chain.at(-1)?.fd}`;
  }

  #hold(path: BytePath, from: string | Buffer): void {
    this.#chain.push({ path, fd: openSync(from, O_PATH | O_NOFOLLOW | O_DIRECTORY | O_RDONLY) });
  }

  #verified(path: BytePath): string {
    const plain = join(this.root, Buffer.from(path, 'latin1').toString());
    if (realpathSync(plain) !== plain) throw new CheckpointError('a directory was exchanged for a link');
    return Buffer.from(plain).toString('latin1');
  }
}

/** Whether relative paths begin at a directory; false when another one has taken the place of a moved one. */
function isWorkingDirectory(root: string): boolean {
  try {
    if (process.cwd() !== root) return false;
    const [here, there] = [statSync('.'), lstatSync(root)];
    return here.dev === there.dev && here.ino === there.ino;
  } catch (error) {
    if (codeOf(error) === undefined) throw error;
    return false;
  }
}

/** Target of a link as a byte text. */
export const linkTarget = (path: string | Buffer): string => readlinkSync(path, { encoding: 'latin1' });
