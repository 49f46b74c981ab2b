import type { AutomationRunInput, Due } from '../../machines/index.ts';
import type { ScheduleStore, StoredAutomation, StoredRun } from '../agent/index.ts';
import { defaults } from '../protocol/index.ts';
import { calculatorOf, passedDues } from './calculator.ts';
import { isRecurring } from './rows.ts';

/** A run whose row has the status `running`. */
export interface BegunRun {
  readonly row: StoredAutomation;
  readonly run: StoredRun;
}

/** Runs and due times as the rows store them. Times are milliseconds since the epoch. Every method may throw `StorageError`. */
export class Ledger {
  readonly #schedules: ScheduleStore;

  constructor(schedules: ScheduleStore) {
    this.#schedules = schedules;
  }

  /**
   * Begins a run by storing it, in one commit with the due times that it stands for.
   * @returns undefined: another process has begun it, or there is nothing to run any more
   */
  begin({ automationId, work, covers }: AutomationRunInput, now: number): BegunRun | undefined {
    return this.#schedules.transaction(() => {
      const row = this.#schedules.automation(automationId);
      if (!row) return undefined;
      const earlier = this.#schedules.run(automationId, work.scheduledFor);
      const isFirst = earlier === undefined;
      // A further try continues the failed one.
      const isOurs = isFirst || (work.attempt > 1 && earlier.status === 'failed');
      const kept = this.#cover(row, covers, isFirst ? work.scheduledFor : undefined);
      if (!isOurs) return undefined;
      const more = covers ? covers.count - (isFirst ? 1 : 0) : 0;
      const begun = {
        automationId,
        scheduledFor: work.scheduledFor,
        attempt: work.attempt,
        status: 'running' as const,
        trigger: work.trigger,
        coalesced: (earlier?.coalesced ?? 1) + more,
        startedAt: now,
      };
      if (earlier) {
        const run = { ...begun, runId: earlier.runId };
        this.#schedules.updateRun(run);
        return { row: kept, run };
      }
      const run = this.#schedules.insertRun(begun);
      return run && { row: kept, run };
    });
  }

  /** A run that an earlier process began; undefined: its automation was removed. */
  running({ automationId, work }: AutomationRunInput): BegunRun | undefined {
    const row = this.#schedules.automation(automationId);
    const run = this.#schedules.run(automationId, work.scheduledFor);
    return row && run?.status === 'running' ? { row, run } : undefined;
  }

  /** Stores the end of a run, and removes the oldest run beyond the limit. Ignores a removed automation. */
  end(run: StoredRun): void {
    this.#schedules.updateRun(run);
    this.#schedules.trimRuns(run.automationId, defaults.automations.runsPerAutomation);
  }

  /** Stores due times as missed or cancelled, without a run. The schedule continues after them. */
  drop(automationId: string, due: Due, status: 'missed' | 'cancelled', now: number): void {
    this.#schedules.transaction(() => {
      const row = this.#schedules.automation(automationId);
      // A one-off that is switched off at its due time waits for its user, not for another due time.
      if (!row || (status === 'missed' && !isRecurring(row.schedule))) return;
      this.#note(row, due.first, due.count, status, now);
      this.#passed(row, due.scheduledFor);
    });
  }

  /** Gives up retries that have waited too long without a server. @returns the others */
  freshRetries(now: number): readonly StoredAutomation[] {
    const rows = this.#schedules.retrying();
    const isFresh = ({ progress: { retry } }: StoredAutomation) =>
      retry !== null && now - retry.at <= defaults.automations.resumeWithinMs;
    for (const row of rows) {
      if (!isFresh(row)) this.#schedules.put({ ...row, progress: { ...row.progress, retry: null } });
    }
    return rows.filter(isFresh);
  }

  /** Finds due times that come again because the clock was set back. A due time that has had its run gets no second one. */
  findAgain(now: number): void {
    for (const row of this.#schedules.handledAfter(now)) {
      if (!isRecurring(row.schedule)) continue;
      const progress = { ...row.progress, lastDueAt: now };
      this.#schedules.put({ ...row, nextAt: calculatorOf(row).next(now), progress });
    }
  }

  /** Due times of a row from `first` up to now, as one. */
  duesOf(row: StoredAutomation, first: number, now: number): { readonly due: Due; readonly next: number | null } {
    const calculator = calculatorOf(row);
    const due = passedDues(calculator, first, now);
    return { due, next: calculator.next(due.scheduledFor) };
  }

  /** The first due time after one. */
  nextAfter(row: StoredAutomation, time: number): number | null {
    return calculatorOf(row).next(time);
  }

  /** Stores the due times that a run stands for, and ends them. `own`: the due time that names the run. */
  #cover(row: StoredAutomation, covers: Due | null, own: number | undefined): StoredAutomation {
    const settled = { ...row, progress: { ...row.progress, retry: null } };
    if (!covers) {
      if (row.progress.retry) this.#schedules.put(settled);
      return settled;
    }
    const missed = covers.count - (own === undefined ? 0 : 1);
    this.#note(row, covers.first, missed, 'missed', undefined);
    return this.#passed(settled, covers.scheduledFor);
  }

  /** Stores one row for due times without a run, at the first without a row: after the clock was set back, one may have a row. */
  #note(row: StoredAutomation, first: number, count: number, status: 'missed' | 'cancelled', now: number | undefined) {
    let at: number | null = first;
    for (let coalesced = count; coalesced > 0 && at !== null; coalesced -= 1) {
      const noted = this.#schedules.insertRun({
        automationId: row.id,
        scheduledFor: at,
        attempt: 0,
        status,
        trigger: 'schedule',
        coalesced,
        ...(now !== undefined && { finishedAt: now }),
      });
      if (noted) return;
      at = this.nextAfter(row, at);
    }
  }

  #passed(row: StoredAutomation, lastDueAt: number): StoredAutomation {
    const passed = { ...row, nextAt: calculatorOf(row).next(lastDueAt), progress: { ...row.progress, lastDueAt } };
    this.#schedules.put(passed);
    return passed;
  }
}
