import { lstatSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { damagedCopyPath } from '../../supervise/index.ts';
import type { ChatRequestStore } from '../chat-request-store.ts';
import type { ResponseStore } from '../response-store.ts';
import type { ScheduleStore } from '../schedule-store.ts';
import type { ThreadStore, TraceStore } from '../thread-store.ts';
import { SqliteChatRequests } from './chat-requests.ts';
import { Database } from './database.ts';
import { storageError } from './errors.ts';
import { SqliteResponses } from './responses.ts';
import { SqliteSchedules } from './schedules.ts';
import { SqliteStore } from './sqlite-store.ts';
import type { Expirable } from './trace-retention.ts';
import { SqliteTraces } from './traces.ts';

/** Threads, traces, automations, repeatable chat requests and responses of one workspace. */
export interface Store {
  readonly threads: ThreadStore;
  readonly traces: TraceStore & Expirable;
  readonly schedules: ScheduleStore;
  readonly chatRequests: ChatRequestStore;
  readonly responses: ResponseStore;
  /** Closes all: writes the traces that wait, and lets go of the file. */
  close(): void;
}

export interface StoreOptions {
  /** Called for failures in the background: a listener that throws, traces that the disk refuses. Default: a warning of the process. */
  readonly onFault?: (error: unknown) => void;
  /** Called with a sentence when the history was lost before the start. Default: a warning of the process. */
  readonly onDamage?: (message: string) => void;
}

/**
 * Opens `state.db` in `directory` (the state of a workspace, below the home), creates it if it is missing, brings it up to date. The
 * workspace's lock must be held: one process writes. A damaged file is never deleted; its error says what to do. An emptied file is
 * moved aside with the files of its log, and reported.
 *
 * @throws StorageError corrupt, readOnly, diskFull, failed (made by a newer version, or in use)
 */
export function openStore(directory: string, { onFault = warn, onDamage = warn }: StoreOptions = {}): Store {
  const file = join(directory, 'state.db');
  const aside = moveEmptiedAside(file);
  if (aside !== undefined)
    onDamage(
      `${file} was empty: its history is lost, or an earlier start ended before it wrote. The file and its logs were moved to ${aside}; restore ${file} from a backup if you have one`,
    );
  const database = new Database(file);
  const users = new Set(['threads', 'traces']);
  const release = (user: string) => () => {
    if (users.delete(user) && users.size === 0) database.close();
  };
  const threads = new SqliteStore(database, release('threads'), onFault);
  const traces = new SqliteTraces({ database, release: release('traces'), onFault });
  return {
    threads,
    traces,
    // Usable for as long as the others are: nothing of them is held open.
    schedules: new SqliteSchedules(database),
    chatRequests: new SqliteChatRequests(database),
    responses: new SqliteResponses(database),
    close() {
      traces.close();
      threads.close();
    },
  };
}

const logs = ['-wal', '-shm', '-journal'];

/**
 * Moves an empty database file and the files of its log aside: SQLite would take it for a new database and delete the log.
 *
 * @returns new path of the file; undefined when it is missing or not empty
 * @throws StorageError when the files cannot be read or moved
 */
function moveEmptiedAside(file: string): string | undefined {
  const aside = damagedCopyPath(file);
  try {
    const found = lstatSync(file, { throwIfNoEntry: false });
    if (!found?.isFile() || found.size > 0) return undefined;
    // The logs first: without them, an interrupted move is repeated at the next start.
    for (const log of logs) {
      if (lstatSync(`${file}${log}`, { throwIfNoEntry: false })) renameSync(`${file}${log}`, `${aside}${log}`);
    }
    renameSync(file, aside);
  } catch (error) {
    throw storageError(error, file);
  }
  return aside;
}

const warn = (error: unknown): void => process.emitWarning(error instanceof Error ? error : String(error));
