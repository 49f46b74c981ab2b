import { join } from 'node:path';
import type { ChatRequestStore } from '../chat-request-store.ts';
import type { ScheduleStore } from '../schedule-store.ts';
import type { ThreadStore, TraceStore } from '../thread-store.ts';
import { SqliteChatRequests } from './chat-requests.ts';
import { Database } from './database.ts';
import { SqliteSchedules } from './schedules.ts';
import { SqliteStore } from './sqlite-store.ts';
import type { Expirable } from './trace-retention.ts';
import { SqliteTraces } from './traces.ts';

/** Threads, traces, automations and repeatable chat requests of one workspace. */
export interface Store {
  readonly threads: ThreadStore;
  readonly traces: TraceStore & Expirable;
  readonly schedules: ScheduleStore;
  readonly chatRequests: ChatRequestStore;
  /** Closes all: writes the traces that wait, and lets go of the file. */
  close(): void;
}

export interface StoreOptions {
  /** Called for failures in the background: a listener that throws, traces that the disk refuses. Default: a warning of the process. */
  readonly onFault?: (error: unknown) => void;
}

/**
 * Opens `state.db` in `directory` (the state of a workspace, below the home), creates it if it is missing, brings it up to date. The
 * workspace's lock must be held: one process writes. A damaged file is never deleted; its error says what to do.
 *
 * @throws StorageError corrupt, readOnly, diskFull, failed (made by a newer version, or in use)
 */
export function openStore(directory: string, { onFault = warn }: StoreOptions = {}): Store {
  const database = new Database(join(directory, 'state.db'));
  const users = new Set(['threads', 'traces']);
  const release = (user: string) => () => {
    if (users.delete(user) && users.size === 0) database.close();
  };
  const threads = new SqliteStore(database, release('threads'));
  const traces = new SqliteTraces({ database, release: release('traces'), onFault });
  return {
    threads,
    traces,
    // Usable for as long as the others are: nothing of them is held open.
    schedules: new SqliteSchedules(database),
    chatRequests: new SqliteChatRequests(database),
    close() {
      traces.close();
      threads.close();
    },
  };
}

const warn = (error: unknown): void => process.emitWarning(error instanceof Error ? error : String(error));
