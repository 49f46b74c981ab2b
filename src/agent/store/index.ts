/**
 * Stores of threads and traces: SQLite (`state.db` of a workspace), or memory for ephemeral threads.
 * Called by the start of the runtime. `../thread-store.ts` states the contract of a store. Never here:
 * turns, permissions, files other than the database.
 */
export { DayLedger, type DayLedgerOptions } from './day-ledger.ts';
export { type History, openHistory, type ThreadReader } from './history.ts';
export { type ImportedHistory, type ImportOptions, importHistory } from './import-history.ts';
export { MemoryStore } from './memory.ts';
export { checkConversation, storeConversation, writeConversation } from './moved-conversation.ts';
export { openStore, type Store, type StoreOptions } from './open.ts';
export { type ListedThread, listThreads, type ThreadListRange } from './thread-list.ts';
export { type RetentionClock, TraceRetention, type TraceRetentionOptions } from './trace-retention.ts';
