import { messageOf } from '../../../lib/index.ts';
import { defaults, type Item, type ToolOutcome, type TraceSession, type Turn } from '../../../protocol/index.ts';
import { AgentError } from '../../errors.ts';
import type { StoredThread, StoredTurn, ThreadStore, TraceStore } from '../../thread-store.ts';
import type { RuntimeServices } from '../services.ts';
import type { Tracer } from '../tracer.ts';
import { factsOf, itemId, type TurnFacts } from '../turn/index.ts';
import type { ThreadRegistry } from './registry.ts';
import type { Turns } from './turns.ts';

const hourMs = 3_600_000;

export interface Recovery {
  readonly services: RuntimeServices;
  readonly registry: ThreadRegistry;
  readonly turns: Turns;
}

/**
 * Takes over the unfinished turns of a dead process. A turn with readable facts is registered, and `resume` of `Turns` lets it continue;
 * every other turn is ended. Items that were growing are completed. No turn stops the start.
 */
export function recoverTurns(recovery: Recovery): void {
  const { services, registry, turns } = recovery;
  // Parents come before their sub-agents, which continue with them.
  const unfinished = services.store.unfinishedTurns();
  for (const turn of unfinished.toSorted((a, b) => a.startedAt.localeCompare(b.startedAt))) {
    try {
      turns.approvals.restore(turn);
      const thread = registry.get(turn.threadId);
      const end = endOf(recovery, turn, thread) ?? register(recovery, turn, thread);
      if (end) endTurn(services.store, turn, end);
    } catch (error) {
      const errorId = services.onBug(error);
      endTurn(services.store, turn, resumeFailed(`a bug; the log has it as ${errorId}`));
    }
  }
}

type End = Pick<StoredTurn, 'status' | 'interruptedBy' | 'error'>;

const crashed: End = { status: 'cancelled', interruptedBy: 'crash' };
const failedWith = (code: string, message: string): End => ({ status: 'failed', error: { code, message } });
const resumeFailed = (reason: string): End =>
  failedWith('resumeFailed', `The turn could not continue after the end of its agent server: ${reason}.`);

/** End of a turn that cannot continue, with any facts. */
function endOf({ services, turns }: Recovery, turn: Turn, thread: StoredThread): End | undefined {
  if (services.settings.turns.resume === 'never') return crashed;
  const agent = turns.delegateNameOf(thread);
  if (agent === undefined) return undefined;
  const { resumeAgents } = services.settings.turns;
  if (resumeAgents && services.store.turnActors.get(turn.threadId, turn.id) !== undefined) return undefined;
  return failedWith(
    'agentInterrupted',
    `The agent ${agent} ended with the agent server in ${turn.id}. Its work is unknown: check it, then send the prompt again.`,
  );
}

/** Registers a turn that continues. @returns the end of a turn that cannot */
function register({ services, turns }: Recovery, turn: Turn, thread: StoredThread): End | undefined {
  const { store, settings } = services;
  const { maxResumes, resumeWithinHours } = settings.turns;
  const text = store.turnActors.get(turn.threadId, turn.id);
  if (text === undefined) return crashed;
  let facts: TurnFacts;
  try {
    facts = factsOf(text, store.turnActors.request(turn.threadId, turn.id));
  } catch (error) {
    return resumeFailed(messageOf(error));
  }
  const at = Date.now();
  if (at - lastStepOf(facts) > resumeWithinHours * hourMs) {
    return { status: 'cancelled', interruptedBy: 'shutdown' };
  }
  if (facts.resumes >= maxResumes) {
    const message = `The agent server ended ${facts.resumes + 1} times in this turn (Turns.MaxResumes is ${maxResumes}). Look for the reason in its log, then start a new turn.`;
    return failedWith('resumedTooOften', message);
  }
  if (turns.isOrphan(thread, facts.options)) return crashed;
  const items = turn.items.map((item) => completed(item, 'unknown'));
  store.transaction(() => {
    for (const item of items) if (!turn.items.includes(item)) store.putItem(turn.threadId, item);
  });
  try {
    const endedAt = lastMomentOf(store, turn, facts);
    const lastAwayMs = Math.max(0, at - endedAt);
    const awayMs = facts.awayMs + lastAwayMs;
    const isReboot = facts.bootId !== undefined && services.bootId !== undefined && facts.bootId !== services.bootId;
    const reason = facts.suspended ?? (isReboot ? 'reboot' : 'crash');
    const resumed = { turn: { ...turn, items }, facts, endedAt, at, reason, awayMs, lastAwayMs } as const;
    const problem = turns.register(thread, resumed);
    return problem === undefined ? undefined : resumeFailed(problem);
  } catch (error) {
    if (!(error instanceof AgentError)) throw error;
    return resumeFailed(error.message);
  }
}

/** Time from which `Turns.ResumeWithinHours` counts. A turn that waits for a quota saves nothing until the end of its wait. */
function lastStepOf({ savedAt, state, context }: TurnFacts): number {
  const waitsUntil = state === 'waitingForQuota' ? (context?.patience.quotaUntil ?? 0) : 0;
  return Math.max(Date.parse(savedAt), waitsUntil);
}

/** Last known activity of the turn: its saved step, or the start or end of a call after that step. */
function lastMomentOf({ turnActors }: ThreadStore, { threadId, id }: Turn, { savedAt }: TurnFacts): number {
  const calls = [...turnActors.calls(threadId, id).values()];
  return Math.max(...[savedAt, ...calls.map(({ startedAt, endedAt = startedAt }) => endedAt)].map(Date.parse));
}

/** Ends a turn in the store. Its items stay, and its thread can continue. */
function endTurn(store: ThreadStore, { items, ...turn }: Turn, end: End): void {
  const { threadId, id: turnId } = turn;
  const completedAt = new Date().toISOString();
  store.transaction(() => {
    for (const item of items) if (item.status !== 'completed') store.putItem(threadId, completed(item, 'cancelled'));
    if (end.error) {
      const id = itemId(store.nextItemNumber(threadId));
      const about = { id, turnId, status: 'completed', createdAt: completedAt } as const;
      store.putItem(threadId, { ...about, type: 'error', error: end.error });
    }
    store.putTurn({ ...turn, ...end, completedAt });
    store.turnActors.delete(threadId, turnId);
  });
}

/**
 * Ends the traces of turns that a dead process left running. Reads the traces, not the threads, because the two are written at
 * different times: each unfinished trace is ended once, also after a crash in this function. Call it after `recoverTurns`.
 *
 * @param continues whether a turn of the thread is registered
 */
export function endCrashedTraces(
  traces: TraceStore,
  store: ThreadStore,
  tracer: Tracer,
  continues: (threadId: string) => boolean,
): void {
  const limit = defaults.dashboard.maxSessionsPerPage;
  let page: readonly TraceSession[];
  let before: string | undefined;
  do {
    page = traces.sessions({ limit, before, status: 'running' });
    for (const session of page) if (!continues(session.sessionKey)) endTrace(session, traces, store, tracer);
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

/** An open question stays open in a turn that continues. @param outcome of a command that ran; `unknown`: the turn continues */
function completed(item: Item, outcome: ToolOutcome): Item {
  if (item.status === 'completed') return item;
  if (item.type === 'question' && outcome === 'unknown') return item;
  if (item.type === 'question') return { ...item, status: 'completed', state: 'cancelled' };
  if (item.type === 'commandExecution') return { ...item, status: 'completed', outcome };
  return { ...item, status: 'completed' };
}
