import type { AutomationInput, AutomationRun, Schedule } from '../protocol/index.ts';

/** A retry that waits, so that it outlives the process. Times here are milliseconds since the epoch. */
export interface StoredRetry {
  readonly scheduledFor: number;
  /** Number of the next try, from 2. */
  readonly attempt: number;
  readonly trigger: AutomationRun['trigger'];
  readonly at: number;
}

/** State of an automation that the scheduler stores. */
export interface AutomationProgress {
  /** Number of failures in a row. */
  readonly failures: number;
  /** The last due time that became a run or was recorded as missed or cancelled. */
  readonly lastDueAt: number | null;
  readonly retry: StoredRetry | null;
  /** Thread of the automation's own conversation (binding `own`). */
  readonly threadId: string | null;
}

/** A stored job or task. */
export interface StoredAutomation {
  readonly id: string;
  readonly kind: 'cron' | 'task';
  readonly name: string;
  readonly prompt: string;
  /** Schedule with its time zone. Absent: once, at `createdAt`. */
  readonly schedule?: Schedule | undefined;
  readonly scheduleText: string;
  readonly enabled: boolean;
  readonly binding: AutomationInput['binding'] & object;
  readonly approvalPolicy?: AutomationInput['approvalPolicy'];
  readonly model?: string | undefined;
  readonly deleteAfterRun: boolean;
  /** The first due time without a run; null: no run is due any more. */
  readonly nextAt: number | null;
  readonly version: number;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Time from which intervals are counted. */
  readonly anchorAt: number;
  readonly progress: AutomationProgress;
}

/** A row of the history. */
export interface StoredRun {
  readonly runId: string;
  readonly automationId: string;
  readonly scheduledFor: number;
  readonly attempt: number;
  readonly status: AutomationRun['status'];
  readonly trigger: AutomationRun['trigger'];
  readonly coalesced: number;
  readonly startedAt?: number | undefined;
  readonly finishedAt?: number | undefined;
  readonly threadId?: string | undefined;
  readonly turnId?: string | undefined;
  readonly result?: string | undefined;
  readonly error?: { readonly code: string; readonly message: string } | undefined;
  /** Tool or external agent whose call with effects has begun in this attempt. Stored before the call begins. */
  readonly effect?: string | undefined;
}

/** Range of a history, newest due time first, before a given one. */
export interface RunRange {
  readonly limit: number;
  /** A runId. */
  readonly before?: string | undefined;
}

/** Reads jobs, tasks and their history. Changes nothing. */
export interface ScheduleReader {
  count(): number;
  /** All ids, in the order in which they were made: rows are read one by one, for there may be many. */
  ids(kind?: StoredAutomation['kind']): readonly string[];
  automation(id: string): StoredAutomation | undefined;
  runs(automationId: string, range: RunRange): readonly StoredRun[];
  run(automationId: string, scheduledFor: number): StoredRun | undefined;
}

/** Store of jobs and tasks: in the database of the workspace. Synchronous, and every method may throw `StorageError`. */
export interface ScheduleStore extends ScheduleReader {
  /** All of `work`'s writes or none, in one commit. Not nested. */
  transaction<T>(work: () => T): T;
  /** Inserts, or replaces the one with the same id. */
  put(automation: StoredAutomation): void;
  /** Deletes an automation with its history. @returns false when it is missing */
  delete(id: string): boolean;

  /** When those that are enabled are due next. */
  dues(): readonly { readonly id: string; readonly nextAt: number }[];
  /** Automations that wait for a retry, enabled or not. */
  retrying(): readonly StoredAutomation[];
  /** Automations whose last due time is after `time`: the clock was set back since. */
  handledAfter(time: number): readonly StoredAutomation[];

  /** @returns undefined when this due time has a row already: the process that inserted it runs it */
  insertRun(run: Omit<StoredRun, 'runId'>): StoredRun | undefined;
  /** Replaces the row with the same due time; without one nothing happens: its automation was removed. */
  updateRun(run: StoredRun): void;
  /** Runs that are recorded as running. */
  unfinishedRuns(): readonly StoredRun[];
  /** Forgets the oldest beyond `keep`. */
  trimRuns(automationId: string, keep: number): void;
}
