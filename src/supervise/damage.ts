/** Damaged state files that a start has set aside. Each copy is reported until the user deletes it. */
import { linkSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { shellWord } from '../lib/index.ts';
import type { Problem } from '../protocol/index.ts';

const suffix = '.damaged-';
/** Files that SQLite puts beside a database. */
const logOfDatabase = /-(?:wal|shm|journal)$/;

/** Path for the copy of a damaged file, beside it. */
export const damagedCopyPath = (file: string): string =>
  `${file}${suffix}${new Date().toISOString().replaceAll(/[:.]/g, '-')}`;

/**
 * Gives a damaged file a second name beside it. The next atomic write replaces the first one only.
 *
 * @returns the second name; null when the file system refuses it
 */
export function linkDamagedCopy(file: string): string | null {
  const copy = damagedCopyPath(file);
  try {
    linkSync(file, copy);
    return copy;
  } catch {
    return null;
  }
}

/** Copies of a damaged file, the oldest first; empty when its directory cannot be read. */
function damagedCopies(file: string): readonly string[] {
  try {
    return readdirSync(dirname(file))
      .filter((name) => name.startsWith(`${basename(file)}${suffix}`) && !logOfDatabase.test(name))
      .toSorted()
      .map((name) => join(dirname(file), name));
  } catch {
    return [];
  }
}

const deletion = (file: string): string => `rm ${shellWord(`${file}${suffix}`)}*`;

/** Reports the records of a home that a Hub found damaged, while their copies exist. */
export function damagedRecords(home: string): readonly Problem[] {
  return records.flatMap(({ name, code, words }) => {
    const file = join(home, 'hub', name);
    const copy = damagedCopies(file).at(-1);
    return copy === undefined ? [] : [{ code, what: words(file, copy), where: file, next: deletion(file) }];
  });
}

const records = [
  {
    name: 'appservers.json',
    code: 'listDamaged',
    words: (file: string, copy: string) =>
      `The list of workspaces, ${file}, was damaged. The Hub moved it to ${copy} and began a new list: run oratorio up in each workspace that is missing, then delete the copy.`,
  },
  {
    name: 'moves.json',
    code: 'movesDamaged',
    words: (file: string, copy: string) =>
      `The record of moves, ${file}, had an invalid row. The Hub left it in ${copy} and uses the valid rows. The conversation of a missing move stays locked: stop the Hub, correct its row and put it into ${file}, start the Hub, then delete the copy.`,
  },
] as const;

const databaseIn = (directory: string): string => join(directory, 'state.db');

/**
 * Reports that a start found the database of a workspace empty; undefined without a copy of that database.
 *
 * @param directory state of the workspace, below the home
 */
export function lostHistory(directory: string): Problem | undefined {
  const file = databaseIn(directory);
  const copy = damagedCopies(file).at(-1);
  if (copy === undefined) return undefined;
  const what = `The history of this workspace begins again: ${file} was empty and was moved to ${copy}. Stop the agent server and restore the file from a backup if you have one, then delete the copy.`;
  return { code: 'historyLost', what, where: file, next: deletion(file) };
}

/** Reports an empty database that no start has moved aside yet. Only for a workspace without a running agent server. */
export function emptiedHistory(directory: string): Problem | undefined {
  const file = databaseIn(directory);
  if (statSync(file, { throwIfNoEntry: false })?.size !== 0) return undefined;
  const what = `${file} is empty: its history is lost, or an earlier start ended before it wrote. Restore the file from a backup if you have one, or start the agent server, which moves it aside and begins a new history.`;
  return { code: 'historyLost', what, where: file, next: 'oratorio up' };
}
