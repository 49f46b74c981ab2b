import { join } from 'node:path';
import type { ScheduleReader } from '../schedule-store.ts';
import { ScheduleQueries } from './schedules.ts';
import { ReadOnlyDatabase } from './trace-reader.ts';

/**
 * Opens the jobs and tasks of `directory` (the state of a workspace, below the home) for reading, whether or not an agent server runs there.
 * The database is neither made nor changed.
 *
 * @throws StorageError failed (it is missing, or another version made it), corrupt, readOnly
 */
export function openScheduleReader(directory: string): ScheduleReader & { close(): void } {
  return new ScheduleView(new ReadOnlyDatabase(join(directory, 'state.db')));
}

class ScheduleView extends ScheduleQueries {
  readonly #database: ReadOnlyDatabase;

  constructor(database: ReadOnlyDatabase) {
    super(database);
    this.#database = database;
  }

  close(): void {
    this.#database.close();
  }
}
