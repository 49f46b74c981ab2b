import {
  chmodSync,
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { DeployError } from '../errors.ts';
import type { StackLayout } from '../layout.ts';
import { onFile } from './failures.ts';
import { type FoundFile, hashOf } from './stack-files.ts';

const names = { reserve: 'reserve', state: 'state', file: 'file-', found: 'found-' } as const;

/** Reserved space on the disk, for the journal entries of an undo. */
const reserveBytes = 64 * 1024;

/** Backups of one change: a directory of its own, 0700, of files with 0600. */
export class Backup {
  readonly directory: string;
  readonly #all: string;

  constructor({ backups }: StackLayout, change: string) {
    this.#all = backups;
    this.directory = join(backups, change);
  }

  /** Makes it, and keeps a reserve for when the disk is full. */
  open(): void {
    onFile(this.directory, () => {
      mkdirSync(this.directory, { recursive: true, mode: 0o700 });
      chmodSync(this.directory, 0o700);
      flush(this.#all);
    });
    this.#put(names.reserve, Buffer.alloc(reserveBytes, '.'));
  }

  /** Gives the reserve back to the disk. */
  spendReserve(): void {
    this.#drop(names.reserve);
  }

  /** Saves the file that was found at `path`; durable when it returns. */
  keep(path: string, { content, hash }: FoundFile): void {
    this.#put(nameOf(names.file, path, hash), content);
  }

  /** Saves a file that another program wrote at `path` while the change lay unfinished. @returns path of the copy */
  keepFound(path: string, { content, hash }: FoundFile): string {
    return this.#put(nameOf(names.found, path, hash), content);
  }

  /** Reads a backup that `keep` made. @throws DeployError fileFailed when its content has changed */
  read(path: string, hash: string): { readonly file: string; readonly content: Uint8Array } {
    const file = join(this.directory, nameOf(names.file, path, hash));
    const content = onFile(file, () => readFileSync(file));
    if (hashOf(content) === hash) return { file, content };
    throw new DeployError('fileFailed', `${file} differs from its saved copy.`);
  }

  /** An empty directory for the state of the backend. */
  makeState(): string {
    const path = this.statePath;
    onFile(path, () => {
      rmSync(path, { recursive: true, force: true });
      mkdirSync(path, { mode: 0o700 });
      flush(this.directory);
    });
    return path;
  }

  get statePath(): string {
    return join(this.directory, names.state);
  }

  /** Removes the backups after a complete undo; copies of foreign changes remain. */
  discard(): void {
    if (!this.#entries().some((name) => name.startsWith(names.found))) {
      onFile(this.directory, () => rmSync(this.directory, { recursive: true, force: true }));
    }
  }

  #entries(): readonly string[] {
    return onFile(this.directory, () => readdirSync(this.directory));
  }

  #put(name: string, content: Uint8Array): string {
    const file = join(this.directory, name);
    onFile(file, () => {
      // Never written through: it may be a second name of the file that was put back from here.
      rmSync(file, { force: true });
      const fd = openSync(file, 'wx', 0o600);
      try {
        writeFileSync(fd, content);
        fsyncSync(fd);
      } finally {
        closeSync(fd);
      }
      flush(this.directory);
    });
    return file;
  }

  #drop(name: string): void {
    const file = join(this.directory, name);
    onFile(file, () => rmSync(file, { force: true }));
  }
}

/** Removes all backups but those of the last changes that have one. @param known changes of the journal, oldest first */
export function pruneBackups({ backups }: StackLayout, known: readonly string[], count: number): void {
  onFile(backups, () => {
    const there = new Set(readdirSync(backups));
    const kept = new Set(known.filter((change) => there.has(change)).slice(-count));
    for (const name of there) if (!kept.has(name)) rmSync(join(backups, name), { recursive: true, force: true });
  });
}

/** A path as the name of one file. The hash distinguishes the contents that two steps found at one path. */
function nameOf(prefix: string, path: string, hash: string): string {
  return `${prefix}${encodeURIComponent(path)}.${hash.slice(0, 12)}`;
}

function flush(directory: string): void {
  const fd = openSync(directory, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
