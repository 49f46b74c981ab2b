import type { ScheduleReader, StoredAutomation, StoredRun } from '../agent/index.ts';
import { type Automation, type AutomationRun, type AutomationsState, defaults } from '../protocol/index.ts';
import { calculatorOf, upcomingDues } from './calculator.ts';
import { isSpent } from './rows.ts';

/** Live state, beside the stored one: for rows without an actor, the state in the row. */
export interface Living {
  readonly state: Automation['state'];
  /** Next due time that has not been handed out yet. */
  readonly nextAt: number | null;
}

const iso = (at: number): string => new Date(at).toISOString();

export function runView(run: StoredRun): AutomationRun {
  const { startedAt, finishedAt, threadId, turnId, result, error } = run;
  return {
    runId: run.runId,
    automationId: run.automationId,
    scheduledFor: iso(run.scheduledFor),
    status: run.status,
    trigger: run.trigger,
    attempt: run.attempt,
    coalesced: run.coalesced,
    ...(startedAt !== undefined && { startedAt: iso(startedAt) }),
    ...(finishedAt !== undefined && { finishedAt: iso(finishedAt) }),
    ...(startedAt !== undefined && finishedAt !== undefined && { durationMs: Math.max(0, finishedAt - startedAt) }),
    ...(threadId !== undefined && { threadId }),
    ...(turnId !== undefined && { turnId }),
    ...(result !== undefined && { result }),
    ...(error && { error }),
  };
}

/** An automation in its form for clients. */
export function automationView(row: StoredAutomation, living: Living, runs: readonly StoredRun[]): Automation {
  const nextAt = row.enabled ? living.nextAt : null;
  const later = nextAt === null ? [] : upcomingDues(calculatorOf(row), nextAt, defaults.automations.upcoming - 1);
  return {
    id: row.id,
    kind: row.kind,
    name: row.name,
    prompt: row.prompt,
    ...(row.schedule && { schedule: row.schedule }),
    scheduleText: row.scheduleText,
    enabled: row.enabled,
    binding: row.binding,
    ...(row.approvalPolicy !== undefined && { approvalPolicy: row.approvalPolicy }),
    ...(row.model !== undefined && { model: row.model }),
    deleteAfterRun: row.deleteAfterRun,
    state: living.state,
    ...(nextAt !== null && { nextRunAt: iso(nextAt) }),
    upcoming: nextAt === null ? [] : [nextAt, ...later].map(iso),
    failures: row.progress.failures,
    recentRuns: runs.map(runView),
    createdAt: iso(row.createdAt),
    updatedAt: iso(row.updatedAt),
    version: row.version,
  };
}

/** State of a row at rest. */
export function restOf(row: StoredAutomation): Living {
  const state = isSpent(row) ? 'finished' : row.enabled ? 'waiting' : 'paused';
  return { state, nextAt: row.nextAt };
}

/** Order of automations: the next one first, those that are never due last. */
export function byNextRun(one: Automation, other: Automation): number {
  if (one.nextRunAt === other.nextRunAt) return 0;
  if (one.nextRunAt === undefined) return 1;
  if (other.nextRunAt === undefined) return -1;
  return one.nextRunAt < other.nextRunAt ? -1 : 1;
}

export function stateOf(
  all: readonly Automation[],
  facts: Pick<AutomationsState, 'revision' | 'isRunning'>,
  now: number,
) {
  const countsByState: Record<string, number> = {};
  for (const { state } of all) countsByState[state] = (countsByState[state] ?? 0) + 1;
  return {
    ...facts,
    generatedAt: iso(now),
    tasks: all.filter(({ kind }) => kind === 'task'),
    cron: all.filter(({ kind }) => kind === 'cron').sort(byNextRun),
    countsByState,
  } satisfies AutomationsState;
}

/**
 * Stored jobs and tasks, for viewers of a workspace without a server. A row that is marked as running was left by a process
 * that has ended.
 */
export function storedState(schedules: ScheduleReader, now: number): AutomationsState {
  const all = schedules.ids().flatMap((id) => {
    const row = schedules.automation(id);
    return row ? [storedView(schedules, row)] : [];
  });
  return stateOf(all, { revision: 0, isRunning: false }, now);
}

function storedView(schedules: ScheduleReader, row: StoredAutomation): Automation {
  const runs = schedules.runs(row.id, { limit: defaults.automations.recentRuns });
  return automationView(row, restOf(row), runs);
}

/** A page of a history. */
export function historyOf(
  schedules: ScheduleReader,
  automationId: string,
  { limit, before }: { readonly limit: number; readonly before?: string | undefined },
): { readonly data: readonly AutomationRun[]; readonly next?: string } {
  const found = schedules.runs(automationId, { limit: limit + 1, before });
  const data = found.slice(0, limit).map(runView);
  const last = data.at(-1);
  return found.length > limit && last ? { data, next: last.runId } : { data };
}
