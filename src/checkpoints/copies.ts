import { chmodSync, lstatSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { CheckpointDatabase } from './database.ts';

/** Copies of the tree that are being made. The next start removes those that a killed process left half-made. */
export class Copies {
  readonly #database: CheckpointDatabase;

  constructor(database: CheckpointDatabase) {
    this.#database = database;
  }

  /** Makes a copy; one that fails is removed. @param target existing directory of this user. @throws what `copy` throws, the system's error */
  async make<T>(target: string, onStep: ((step: string) => void) | undefined, copy: () => Promise<T>): Promise<T> {
    const { dev, ino } = lstatSync(target);
    this.#database.run('INSERT OR REPLACE INTO copies (target, dev, ino) VALUES (?, ?, ?)', target, dev, ino);
    try {
      const result = await copy();
      this.#end(target);
      onStep?.('copied');
      return result;
    } catch (error) {
      this.removeHalfMade();
      throw error;
    }
  }

  /** Removes the copies that did not end; a directory that took the place of one stays. @throws the system's error */
  removeHalfMade(): void {
    for (const row of this.#database.all('SELECT * FROM copies')) {
      const target = String(row['target']);
      const stats = lstatSync(target, { throwIfNoEntry: false });
      if (stats?.isDirectory() && stats.dev === Number(row['dev']) && stats.ino === Number(row['ino'])) remove(target);
      this.#end(target);
    }
  }

  #end(target: string): void {
    this.#database.run('DELETE FROM copies WHERE target = ?', target);
  }
}

/** Removes a directory of this user, also one with directories that take no entries. */
function remove(directory: string): void {
  open(directory);
  rmSync(directory, { recursive: true, force: true });
}

function open(directory: string): void {
  chmodSync(directory, 0o700);
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    if (entry.isDirectory()) open(join(directory, entry.name));
  }
}
