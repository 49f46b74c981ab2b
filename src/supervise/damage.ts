/** Damaged state files that a start has moved aside. Each copy is reported until the user deletes it. */
import { readdirSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { shellWord } from '../lib/index.ts';
import type { Problem } from '../protocol/index.ts';

const suffix = '.damaged-';
/** Files that SQLite puts beside a database. */
const logOfDatabase = /-(?:wal|shm|journal)$/;

/** Path for the copy of a damaged file, beside it. */
export const damagedCopyPath = (file: string): string =>
  `${file}${suffix}${new Date().toISOString().replaceAll(/[:.]/g, '-')}`;

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

/** Reports that a Hub of this home found its list of workspaces damaged; undefined without a copy of that list. */
export function lostList(home: string): Problem | undefined {
  const file = join(home, 'hub', 'appservers.json');
  const copy = damagedCopies(file).at(-1);
  if (copy === undefined) return undefined;
  const what = `The list of workspaces, ${file}, was damaged. The Hub moved it to ${copy} and began a new list: run oratorio up in each workspace that is missing, then delete the copy.`;
  return { code: 'listDamaged', what, where: file, next: deletion(file) };
}

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
