import type { AutomationRunInput, Due } from '../../machines/index.ts';
import type { ScheduleStore, StoredAutomation, StoredRun } from '../agent/index.ts';
import { defaults } from '../protocol/index.ts';
import { calculatorOf, passedDues } from './calculator.ts';
import { isRecurring } from './rows.ts';

/** A run whose row says that it runs. */
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
   * Begins a run by writing it down, in one commit with the due times it stands for. Undefined: another process has
   * begun it, or there is nothing to run any more.
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

  /** Stores its end, and removes the oldest run beyond the limit. A removed automation is left alone. */
  end(run: StoredRun): void {
    this.#schedules.updateRun(run);
    this.#schedules.trimRuns(run.automationId, defaults.automations.runsPerAutomation);
  }

  /** Due times without a run: the schedule continues after them. */
  drop(automationId: string, due: Due, status: 'missed' | 'cancelled', now: number): void {
    this.#schedules.transaction(() => {
      const row = this.#schedules.automation(automationId);
      // A one-off that is switched off when its time has come waits for its user, not for its time.
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

  /** Due times that come again because the clock was set back. One that has had its run has no second. */
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

  /** The due times that a run stands for are noted, and are over. `own`: the one that the run is called after. */
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

  /** One row for due times without a run. One that has a row already (the clock was set back) is not noted twice. */
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
