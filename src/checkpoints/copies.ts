import { chmodSync, lstatSync, readdirSync, rmSync, type Stats } from 'node:fs';
import { join } from 'node:path';
import type { CheckpointDatabase } from './database.ts';
import type { RunGit } from './ignored.ts';

/**
 * Copies of the tree in the making, each from before its directory exists until a conversation that works in it is stored. The next
 * start removes those that a killed process left without one.
 */
export class Copies {
  readonly #database: CheckpointDatabase;
  readonly #git: RunGit | undefined;

  /** @param git in the tree whose worktrees copies may be */
  constructor(database: CheckpointDatabase, git: RunGit | undefined) {
    this.#database = database;
    this.#git = git;
  }

  /** Notes a copy whose directory does not exist yet. */
  announce(target: string): void {
    this.#database.run('INSERT OR REPLACE INTO copies (target, dev, ino) VALUES (?, 0, 0)', target);
  }

  /** Fills the directory of a copy; removes it when `copy` fails. @throws any error of `copy`, the system's error */
  async fill<T>(target: string, copy: () => Promise<T>): Promise<T> {
    const { dev, ino } = lstatSync(target);
    this.#database.run('INSERT OR REPLACE INTO copies (target, dev, ino) VALUES (?, ?, ?)', target, dev, ino);
    try {
      return await copy();
    } catch (error) {
      await this.remove(target);
      throw error;
    }
  }

  /** Notes the mark from which a copy was made: the base of its merge. */
  noteBase(target: string, seq: number): void {
    this.#database.run('INSERT OR REPLACE INTO forks (target, seq) VALUES (?, ?)', target, seq);
  }

  /** Mark from which a copy was made. @returns undefined: an earlier version made it */
  baseOf(target: string): number | undefined {
    const seq = this.#database.get('SELECT seq FROM forks WHERE target = ?', target)?.['seq'];
    return seq === undefined ? undefined : Number(seq);
  }

  /** Forgets the bases of copies whose directories are gone. */
  trim(): void {
    for (const { target } of this.#database.all('SELECT target FROM forks')) {
      const isGone = lstatSync(String(target), { throwIfNoEntry: false }) === undefined;
      if (isGone) this.#database.run('DELETE FROM forks WHERE target = ?', String(target));
    }
  }

  /** Keeps a copy in which a conversation works. */
  keep(target: string): void {
    this.#database.run('DELETE FROM copies WHERE target = ?', target);
  }

  /** Copies that were neither kept nor removed. */
  get open(): readonly string[] {
    return this.#database.all('SELECT target FROM copies').map((row) => String(row['target']));
  }

  /**
   * Removes a copy that is not kept, with its entry among the worktrees of git; a directory that took its place stays.
   * @throws the system's error
   */
  async remove(target: string): Promise<void> {
    const row = this.#database.get('SELECT dev, ino FROM copies WHERE target = ?', target);
    if (!row) return;
    const stats = lstatSync(target, { throwIfNoEntry: false });
    if (!stats || isOwn(stats, { dev: Number(row['dev']), ino: Number(row['ino']) })) {
      if (stats) open(target);
      // Fails for a directory that is not a worktree.
      await this.#git?.(['worktree', 'remove', '--force', '--force', '--', target], '');
      rmSync(target, { recursive: true, force: true });
      this.#database.run('DELETE FROM forks WHERE target = ?', target);
    }
    this.keep(target);
  }
}

/** Whether a directory is the one of a copy. A copy that was only announced has no identity: its name was free. */
function isOwn(stats: Stats, noted: { readonly dev: number; readonly ino: number }): boolean {
  if (!stats.isDirectory() || stats.uid !== process.getuid?.()) return false;
  return noted.ino === 0 || (stats.dev === noted.dev && stats.ino === noted.ino);
}

/** Gives this user the rights on directories that take no entries. */
function open(directory: string): void {
  chmodSync(directory, 0o700);
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    if (entry.isDirectory()) open(join(directory, entry.name));
  }
}
