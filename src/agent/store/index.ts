/**
 * Where threads and traces are kept: in SQLite (`state.db` of a workspace), or in memory for threads that nobody is to
 * find again. Called by whoever starts the runtime. What a store must do is said in `../thread-store.ts`. Never here:
 * what a turn is, who may see what, files other than the database.
 */
export { type ImportedHistory, type ImportOptions, importHistory } from './import-history.ts';
export { MemoryStore } from './memory.ts';
export { openStore, type Store, type StoreOptions } from './open.ts';
export { openScheduleReader } from './schedule-reader.ts';
export { openTraceReader } from './trace-reader.ts';
export { type RetentionClock, TraceRetention, type TraceRetentionOptions } from './trace-retention.ts';
