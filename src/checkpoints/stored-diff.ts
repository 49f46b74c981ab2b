import { existsSync } from 'node:fs';
import { ContentReader } from './content-reader.ts';
import { CheckpointDatabase } from './database.ts';
import { type DiffRequest, diffOf, type TurnDiff } from './diff.ts';
import { databaseIn, packsIn } from './engine-options.ts';
import { uncoveredOf } from './entry.ts';
import { History } from './history.ts';
import { stateAt } from './repositories.ts';

/**
 * Reads changes of turns from the store of a tree that no engine has open. Writes nothing. For a running turn, returns the changes
 * up to its last mark.
 *
 * @throws CheckpointError, the error of SQLite
 */
export async function storedDiff(place: { readonly root: string; readonly directory: string }, request: DiffRequest) {
  const file = databaseIn(place.directory);
  if (!existsSync(file)) return nothing(request);
  const database = new CheckpointDatabase(file, { readOnly: true });
  try {
    const contents = new ContentReader(packsIn(place.directory), database);
    const repositories = { root: place.root, at: (saved: unknown) => stateAt(contents, saved) };
    return await diffOf({ history: new History(database), contents, repositories }, request);
  } finally {
    database.close();
  }
}

const nothing = ({ isUnified }: DiffRequest): TurnDiff => ({
  ...{ files: [], diff: isUnified ? '' : undefined, isCut: false, putBack: [] },
  ...uncoveredOf([]),
});
