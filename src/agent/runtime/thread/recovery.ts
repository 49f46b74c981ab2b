import { defaults, type Item, type TraceSession } from '../../../protocol/index.ts';
import type { StoredTurn, ThreadStore, TraceStore } from '../../thread-store.ts';
import type { Tracer } from '../tracer.ts';

/**
 * Marks the unfinished turns of a dead process as interrupted by its crash. Their items stay,
 * and their threads can continue.
 */
export function markCrashed(store: ThreadStore): void {
  const unfinished = store.unfinishedTurns();
  if (unfinished.length === 0) return;
  const completedAt = new Date().toISOString();
  store.transaction(() => {
    for (const { items, ...turn } of unfinished) {
      for (const item of items) if (item.status !== 'completed') store.putItem(turn.threadId, completed(item));
      store.putTurn({ ...turn, status: 'cancelled', interruptedBy: 'crash', completedAt });
    }
  });
}

/**
 * Ends the traces of turns that a dead process left running. Reads the traces, not the threads, because the two are written at
 * different times: each unfinished trace is ended once, also after a crash in this function. Call it after `markCrashed` and
 * before any turn.
 */
export function endCrashedTraces(traces: TraceStore, store: ThreadStore, tracer: Tracer): void {
  const limit = defaults.dashboard.maxSessionsPerPage;
  let page: readonly TraceSession[];
  let before: string | undefined;
  do {
    page = traces.sessions({ limit, before, status: 'running' });
    for (const session of page) endTrace(session, traces, store, tracer);
    before = page.at(-1)?.sessionKey;
  } while (page.length === limit);
}

function endTrace(session: TraceSession, traces: TraceStore, store: ThreadStore, tracer: Tracer): void {
  const { sessionKey: threadId, lastActivityAt } = session;
  const [started] = traces.events(threadId, { types: ['turn.started'], order: 'desc', limit: 1 }).events;
  const turn = started?.turnId === undefined ? undefined : store.turn(threadId, started.turnId);
  // The stored turn has its end, only the trace lacks it. Ephemeral threads are missing after a crash.
  if (turn && hasEnded(turn)) tracer.turnEnded(turn);
  else tracer.turnCrashed({ threadId, turnId: started?.turnId }, started?.at ?? lastActivityAt, lastActivityAt);
}

const hasEnded = ({ completedAt, interruptedBy }: StoredTurn): boolean =>
  completedAt !== undefined && interruptedBy !== 'crash';

function completed(item: Item): Item {
  if (item.type === 'commandExecution') return { ...item, status: 'completed', outcome: 'cancelled' };
  return { ...item, status: 'completed' };
}
