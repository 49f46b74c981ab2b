import { randomUUID } from 'node:crypto';
import {
  closeSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmdirSync,
  rmSync,
  type Stats,
  unlinkSync,
} from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { readUntrustedJson, writeFileAtomic } from '../../../lib/index.ts';
import { ProcessIdentity } from '../../../protocol/index.ts';
import { isAlive, ownIdentity } from '../../../supervise/index.ts';
import { isWithin } from '../paths.ts';
import { between, statOf } from './mount-plan.ts';

/** Stored form of a placeholder. */
export const StandingName = v.object({ path: v.string(), isDirectory: v.boolean(), identity: v.string() });
export type StandingName = v.InferOutput<typeof StandingName>;

interface Standing {
  readonly isDirectory: boolean;
  readonly identity: string;
  users: number;
}

/** A file that the user makes at the same path has another time, if not another number. */
const identityOf = (found: Stats | undefined): string =>
  found ? `${found.dev}:${found.ino}:${found.birthtimeMs}` : '';

/** Placeholders of one process, for the process that removes them when this one was killed. */
const StandingRecord = v.object({
  owner: ProcessIdentity,
  placeholders: v.array(StandingName),
});

/**
 * Empty files and directories that stand for missing names while a sandbox is open: bubblewrap can close only a name that exists. The last
 * sandbox that needs one removes it, if it is still empty. After a kill the next start does so: see `sweepPlaceholders`.
 */
export class Placeholders {
  readonly #standing = new Map<string, Standing>();
  readonly #recordName = `${randomUUID()}.json`;

  /**
   * Makes a placeholder, and missing directories above it.
   *
   * @param top nothing is made outside of it
   * @returns paths that were made for this call or an earlier one; undefined: it cannot be made
   */
  stand(top: string, path: string, isDirectory: boolean): readonly string[] | undefined {
    if (!isWithin(top, path) || path === top) return undefined;
    const missing = [...between(top, path), path].filter((each) => this.#standing.has(each) || !statOf(each));
    const made: string[] = [];
    try {
      for (const each of missing) {
        this.#make(each, each !== path || isDirectory);
        made.push(each);
      }
      return made;
    } catch {
      this.release(made);
      return undefined;
    }
  }

  /** Gives up placeholders of `stand`. */
  release(paths: readonly string[]): void {
    for (const path of [...paths].reverse()) {
      const known = this.#standing.get(path);
      if (!known) continue;
      known.users -= 1;
      if (known.users > 0) continue;
      this.#standing.delete(path);
      remove(path, known);
    }
  }

  /** Stores the placeholders that stand. @param directory of the records */
  record(directory: string): void {
    const standing = [...this.#standing].map(([path, { isDirectory, identity }]) => ({ path, isDirectory, identity }));
    if (standing.length === 0) return;
    try {
      mkdirSync(directory, { recursive: true, mode: 0o700 });
      const text = JSON.stringify({ owner: ownIdentity(), placeholders: standing });
      writeFileAtomic(join(directory, this.#recordName), text, { isFlushed: false });
    } catch {
      // Without a record a kill leaves them, which git ignores.
    }
  }

  /** Placeholders at these paths. */
  namesOf(paths: readonly string[]): readonly StandingName[] {
    return [...new Set(paths)].flatMap((path) => {
      const known = this.#standing.get(path);
      return known ? [{ path, isDirectory: known.isDirectory, identity: known.identity }] : [];
    });
  }

  /** Takes over placeholders that another process created. @returns paths of those that still exist, for `release` */
  take(names: readonly StandingName[]): string[] {
    const standing = names.filter(
      ({ path, identity }) => identity !== '' && identity === identityOf(statOf(path, lstatSync)),
    );
    for (const { path, isDirectory, identity } of standing) {
      const users = this.#standing.get(path)?.users ?? 0;
      this.#standing.set(path, { isDirectory, identity, users: users + 1 });
    }
    return standing.map(({ path }) => path);
  }

  /** Leaves placeholders to another process. */
  forget(paths: readonly string[]): void {
    for (const path of paths) {
      const known = this.#standing.get(path);
      if (!known) continue;
      known.users -= 1;
      if (known.users === 0) this.#standing.delete(path);
    }
  }

  /** Whether a placeholder stands for this name. */
  has(path: string): boolean {
    return this.#standing.has(path);
  }

  #make(path: string, isDirectory: boolean): void {
    const known = this.#standing.get(path);
    if (known && known.identity === identityOf(statOf(path, lstatSync))) {
      known.users += 1;
      return;
    }
    if (isDirectory) mkdirSync(path);
    else closeSync(openSync(path, 'wx', 0o644));
    this.#standing.set(path, { isDirectory, identity: identityOf(statOf(path, lstatSync)), users: 1 });
  }
}

/**
 * Removes placeholders of processes that were killed.
 *
 * @param directory of the records
 * @param findStanding returns placeholders that a sandboxed command still needs. Called once the process is known to be dead, so that
 *   it stores no more mounts
 */
export function sweepPlaceholders(directory: string, findStanding: () => ReadonlySet<string> = () => new Set()): void {
  for (const name of namesIn(directory).filter((each) => recordForm.test(each))) {
    const file = join(directory, name);
    const record = readUntrustedJson(file, StandingRecord);
    if (record.kind === 'ok' && isAlive(record.value.owner) !== 'gone') continue;
    if (record.kind === 'ok') {
      const standing = findStanding();
      removeNames(record.value.placeholders.filter(({ path }) => !standing.has(path)));
    }
    removeRecord(file);
  }
}

/** Removes placeholders that are still empty. */
export function removeNames(names: readonly StandingName[]): void {
  for (const each of [...names].reverse()) remove(each.path, each);
}

/** Removes a record, even if a directory or a link is in its place. */
export function removeRecord(file: string): void {
  try {
    rmSync(file, { recursive: true, force: true });
  } catch {
    // The next start reads the record again.
  }
}

/** Names of the records of processes. */
const recordForm = /\.json$/;

function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

function remove(path: string, { isDirectory, identity }: Omit<Standing, 'users'>): void {
  const found = statOf(path, lstatSync);
  if (!found || identity !== identityOf(found)) return;
  try {
    if (isDirectory) rmdirSync(path);
    else if (found.size === 0) unlinkSync(path);
  } catch {
    // The directory is in use by now.
  }
}
