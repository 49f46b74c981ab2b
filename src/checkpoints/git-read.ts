import { type Dirent, lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { BytePath } from './byte-path.ts';
import { isGone } from './errors.ts';
import { type GitPlace, gitPath, maxHeadBytes, readBytes } from './git-place.ts';
import { commitPattern, commonNames, type GitState, operationNames, refPattern } from './git-state.ts';

const maxPackedBytes = 16 * 2 ** 20;
const maxRefs = 20_000;
/** Largest size of one file of an operation, or of the configuration. */
const maxFileBytes = 256 * 1_024;
const maxFiles = 500;
const isOwnOfWorktree = /^refs\/(?:bisect|worktree|rewritten)(?:\/|$)/;

/** Reads HEAD, all refs and the small files of a repository, without a process. @returns undefined: no repository */
export function readRepository(place: GitPlace): GitState | undefined {
  const head = readBytes(join(place.directory, 'HEAD'), maxHeadBytes)?.trim();
  if (head === undefined) return undefined;
  return new Reading(place).read(head);
}

class Reading {
  readonly #place: GitPlace;
  readonly #refs: Record<string, string> = {};
  readonly #files: Record<string, string> = {};
  #refCount = 0;
  #fileCount = 0;
  #isPartial = false;

  constructor(place: GitPlace) {
    this.#place = place;
  }

  read(head: string): GitState {
    const { kind, directory, common } = this.#place;
    this.#readPacked();
    this.#readLoose(common, 'refs');
    if (directory !== common)
      for (const name of ['bisect', 'worktree', 'rewritten']) this.#readLoose(directory, `refs/${name}`);
    for (const name of commonNames) this.#readFile(common, name);
    const names = new Set(this.#entries(directory, '.').map((entry) => entry.name));
    for (const name of operationNames) if (names.has(name)) this.#readTree(name);
    return {
      ...{ head, refs: this.#refs, files: this.#files },
      ...(kind !== 'own' && { place: { kind, directory } }),
      ...(this.#isPartial && { isPartial: true }),
    };
  }

  #readPacked(): void {
    const file = join(this.#place.common, 'packed-refs');
    const text = readBytes(file, maxPackedBytes);
    if (text === undefined && lstatSync(file, { throwIfNoEntry: false })) this.#isPartial = true;
    for (const line of (text ?? '').split('\n')) {
      const at = line.indexOf(' ');
      if (at > 0) this.#add(line.slice(at + 1), line.slice(0, at));
    }
  }

  #readLoose(directory: string, below: BytePath): void {
    for (const entry of this.#entries(directory, below)) {
      const name = `${below}/${entry.name}`;
      if (entry.isDirectory()) this.#readLoose(directory, name);
      else if (entry.isFile() && !(directory !== this.#place.directory && isOwnOfWorktree.test(name))) {
        this.#add(name, readBytes(gitPath(directory, name), maxHeadBytes)?.trim() ?? '');
      }
    }
  }

  #add(name: string, value: string): void {
    const target = value.startsWith('ref: ') ? value.slice('ref: '.length) : undefined;
    if (!refPattern.test(name) || !(target === undefined ? commitPattern : refPattern).test(target ?? value)) return;
    if (!(name in this.#refs)) this.#refCount += 1;
    if (this.#refCount > maxRefs) this.#isPartial = true;
    else this.#refs[name] = value;
  }

  /** Reads a file, or the files of a directory. */
  #readTree(name: BytePath): void {
    const { directory } = this.#place;
    const stats = lstatSync(gitPath(directory, name), { throwIfNoEntry: false });
    if (stats?.isDirectory())
      for (const entry of this.#entries(directory, name)) this.#readTree(`${name}/${entry.name}`);
    else if (stats) this.#readFile(directory, name);
  }

  #readFile(directory: string, name: BytePath): void {
    const path = gitPath(directory, name);
    const text = readBytes(path, maxFileBytes);
    if (text === undefined) {
      if (lstatSync(path, { throwIfNoEntry: false })?.isFile()) this.#isPartial = true;
      return;
    }
    this.#fileCount += 1;
    if (this.#fileCount > maxFiles) this.#isPartial = true;
    else this.#files[name] = text;
  }

  #entries(directory: string, below: BytePath): readonly Dirent<string>[] {
    try {
      // One character a byte.
      return readdirSync(gitPath(directory, below), { withFileTypes: true, encoding: 'latin1' });
    } catch (error) {
      if (isGone(error)) return [];
      throw error;
    }
  }
}

/** Latest change of the files that hold the state of a repository, in milliseconds. */
export function repositoryChangedAt({ directory, common }: GitPlace): number {
  let latest = 0;
  const look = (parent: string, name: BytePath) => {
    try {
      const stats = lstatSync(gitPath(parent, name), { throwIfNoEntry: false });
      if (!stats) return;
      latest = Math.max(latest, stats.ctimeMs);
      if (!stats.isDirectory()) return;
      for (const entry of readdirSync(gitPath(parent, name), { encoding: 'latin1' })) look(parent, `${name}/${entry}`);
    } catch (error) {
      if (!isGone(error)) throw error;
    }
  };
  for (const name of ['HEAD', 'index', ...operationNames]) look(directory, name);
  for (const name of ['packed-refs', 'refs', ...commonNames]) look(common, name);
  return latest;
}
