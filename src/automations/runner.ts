import { type Actor, createActor, fromPromise } from 'xstate';
import { type AutomationEmitted, schedulerMachine } from '../../machines/index.ts';
import type { ScheduleStore, StoredAutomation, StoredRetry, StoredRun } from '../agent/index.ts';
import { type Automation, defaults } from '../protocol/index.ts';
import { AutomationActors, type AutomationSnapshot, termsOf } from './actors.ts';
import { Calendar } from './calendar.ts';
import { type Clock, systemClock } from './clock.ts';
import { leftTurnOf } from './conversation.ts';
import { Ledger } from './ledger.ts';
import type { AutomationsOptions } from './options.ts';
import { notRepeated, runActor } from './run-actor.ts';
import { Slots } from './slots.ts';
import { setBackMs, tickerOf } from './ticker.ts';
import { type Living, restOf } from './views.ts';

/** Up to this number each automation has an actor, for viewers; beyond it, only active ones do. */
const keepActorsUpTo = 256;

export interface RunnerOptions extends AutomationsOptions {
  /** Called when an automation has changed. */
  readonly onChange: (id: string) => void;
  /** Called when a one-off has completed that was to be removed then. */
  readonly onVanished: (id: string) => void;
}

/** Makes automations run: the scheduler's actor and its index of due times, the actors of automations, the slots. */
export class Runner {
  readonly #options: RunnerOptions;
  readonly #schedules: ScheduleStore;
  readonly #clock: Clock;
  readonly #ledger: Ledger;
  readonly #calendar = new Calendar();
  readonly #slots: Slots;
  readonly #actors: AutomationActors;
  readonly #scheduler: Actor<typeof schedulerMachine>;
  readonly #underWay = new Set<Promise<void>>();
  /** Ends of runs, written together with the state that follows. They stay here while the disk refuses them. */
  readonly #ends = new Map<string, StoredRun>();
  #count = 0;

  constructor(options: RunnerOptions) {
    const { schedules, settings, clock = systemClock } = options;
    this.#options = options;
    this.#schedules = schedules;
    this.#clock = clock;
    this.#ledger = new Ledger(schedules);
    this.#slots = new Slots(settings.maxConcurrentRuns);
    this.#actors = this.#createActors();
    this.#scheduler = this.#createScheduler();
  }

  /** Resolves when due times are watched, or when that has failed and is to be retried later. */
  async start(): Promise<void> {
    const settled = Promise.withResolvers<void>();
    this.#scheduler.subscribe({
      next: (snapshot) => {
        if (!snapshot.hasTag('starting')) settled.resolve();
      },
      // Without this observer an error of the machine would end the process.
      error: (error) => {
        this.#options.onFault(error);
        settled.resolve();
      },
    });
    this.#options.observe?.(this.#scheduler, { id: 'scheduler', machine: 'scheduler', title: 'scheduler' });
    this.#scheduler.start();
    await settled.promise;
  }

  get isRunning(): boolean {
    return this.#scheduler.getSnapshot().hasTag('running');
  }

  /** Whether a run is in progress, or will become due. */
  get isExpecting(): boolean {
    return !this.#calendar.isEmpty || this.#slots.busy > 0;
  }

  get count(): number {
    return this.#count;
  }

  describe(): Readonly<Record<string, unknown>> {
    const { value, context } = this.#scheduler.getSnapshot();
    const next = this.#calendar.nextDue;
    return {
      scheduler: value,
      automations: this.#count,
      actors: this.#actors.size,
      runs: this.#slots.busy,
      ...(next !== null && { nextRunAt: new Date(next).toISOString() }),
      ...(context.lastError !== null && { lastError: context.lastError }),
    };
  }

  /** State of an automation, beside its row. */
  livingOf(row: StoredAutomation): Living {
    const state = this.#actors.stateOf(row.id) ?? restOf(row).state;
    return { state, nextAt: this.#calendar.dueOf(row.id) };
  }

  stateOf(id: string): Automation['state'] | undefined {
    return this.#actors.stateOf(id);
  }

  /** Reads the rows and the clock again. */
  refresh(): void {
    this.#index();
    this.#scheduler.send({ type: 'WAKE' });
  }

  /** Takes up a new row. */
  added(row: StoredAutomation): void {
    this.#count += 1;
    if (this.#keepsResting()) this.#actors.wake(row.id);
    this.#expect(row, row.nextAt);
  }

  /** Takes up a user's change of a row. Due times that were handed out already stay so, unless the schedule has changed. */
  changed(before: StoredAutomation, row: StoredAutomation): void {
    const isRescheduled = row.nextAt !== before.nextAt || (row.enabled && !before.enabled);
    const nextAt = isRescheduled ? row.nextAt : (this.#calendar.dueOf(row.id) ?? row.nextAt);
    this.#actors.notify(row.id, { type: 'CHANGED', terms: termsOf(row) });
    if (row.enabled !== before.enabled) this.#actors.notify(row.id, { type: row.enabled ? 'ENABLE' : 'DISABLE' });
    this.#expect(row, nextAt);
  }

  removed(id: string): void {
    this.#count -= 1;
    this.#calendar.remove(id);
    this.#ends.delete(id);
    this.#actors.notify(id, { type: 'REMOVE' });
  }

  /** @param at names the run; no run of this automation has this time yet */
  run(id: string, at: number): void {
    this.#actors.send(id, { type: 'RUN', at });
  }

  cancel(id: string): void {
    this.#actors.send(id, { type: 'CANCEL' });
  }

  /** Begins no more runs. Resolves when every run has ended; the runtime ends their turns. */
  async close(): Promise<void> {
    this.#slots.close();
    const stopped = Promise.withResolvers<void>();
    this.#scheduler.subscribe({ complete: stopped.resolve, error: () => stopped.resolve() });
    this.#scheduler.send({ type: 'STOP' });
    await stopped.promise;
    this.#actors.stop();
  }

  #createScheduler() {
    const machine = schedulerMachine.provide({
      actors: {
        recover: fromPromise(async () => ({ recovered: this.#recover() })),
        ticker: tickerOf(this.#clock, () => this.#calendar.next()),
        drain: fromPromise(async () => {
          while (this.#underWay.size > 0) await Promise.allSettled(this.#underWay);
        }),
      },
      actions: {
        restoreDueTimes: () => this.#safely(() => this.#restoreDueTimes()),
        dispatchDue: () => this.#safely(() => this.#dispatchDue()),
      },
    });
    return createActor(machine, { id: 'scheduler', clock: this.#clock });
  }

  #createActors(): AutomationActors {
    const { runtime, workspacePath, settings, observe, onFault } = this.#options;
    const run = runActor({
      runtime,
      schedules: this.#schedules,
      workspacePath,
      onFault,
      ledger: this.#ledger,
      clock: this.#clock,
      turnTimeoutMs: settings.turnTimeoutMs,
      track: (work) => this.#track(work),
      ended: (ended) => this.#ends.set(ended.automationId, ended),
    });
    return new AutomationActors(
      {
        settings,
        observe,
        onFault,
        clock: this.#clock,
        row: (id) => this.#schedules.automation(id),
        requestSlot: (id) => this.#slots.ask(id, () => this.#actors.notify(id, { type: 'SLOT' })),
        releaseSlot: (id) => this.#slots.release(id),
        changed: (id, snapshot) => this.#safely(() => this.#moved(id, snapshot)),
        dropped: (id, event) => this.#safely(() => this.#dropped(id, event)),
        keepsResting: () => this.#keepsResting(),
      },
      run,
    );
  }

  #track(work: Promise<void>): void {
    const tracked = work
      .catch((error: unknown) => this.#options.onFault(error))
      .finally(() => this.#underWay.delete(tracked));
    this.#underWay.add(tracked);
  }

  /** Reports an error instead of ending an actor. A missing row is not a failure of this code. */
  #safely(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#options.onFault(error);
    }
  }

  #keepsResting(): boolean {
    return this.#count <= (this.#options.keepActors ?? keepActorsUpTo);
  }

  #expect(row: StoredAutomation, nextAt: number | null): void {
    this.#calendar.setDue(row.id, row.enabled ? nextAt : null);
    this.#scheduler.send({ type: 'WAKE' });
  }

  /** @throws StorageError */
  #recover(): number {
    const now = this.#clock.now();
    const left = this.#schedules.unfinishedRuns();
    this.#ledger.findAgain(now + setBackMs);
    this.#index();
    for (const run of left) if (!this.#resume(run)) this.#endLeft(run, now);
    for (const { id, progress } of this.#ledger.freshRetries(now)) {
      this.#calendar.setRetry(id, progress.retry?.at ?? null);
    }
    if (this.#keepsResting()) for (const id of this.#schedules.ids()) this.#actors.wake(id);
    return left.length;
  }

  /** Continues a run of an earlier process with its turn. @returns false: its turn ended with that process */
  #resume(run: StoredRun): boolean {
    const { automationId, scheduledFor, attempt, trigger } = run;
    // A recovery that failed is repeated.
    if (this.#actors.stateOf(automationId) === 'running') return true;
    if (!leftTurnOf(this.#options.runtime, run)) return false;
    this.#actors.send(automationId, { type: 'RUN.RESUMED', work: { scheduledFor, attempt, trigger } });
    return true;
  }

  /** Ends a run of an earlier process. Its machine decides whether it is tried again; `#moved` stores both. */
  #endLeft(run: StoredRun, now: number): void {
    const { automationId, scheduledFor, attempt, trigger, startedAt = 0, effect = null } = run;
    // A recovery that failed is repeated.
    if (this.#ends.has(automationId)) return;
    const ended = 'The agent server ended while it ran.';
    const message = effect === null ? ended : notRepeated(ended, effect);
    const isRetryable = now - startedAt <= defaults.automations.resumeWithinMs;
    this.#ends.set(automationId, { ...run, status: 'failed', error: { code: 'crashed', message } });
    this.#actors.send(automationId, {
      type: 'RUN.LEFT',
      work: { scheduledFor, attempt, trigger },
      effect,
      outcome: { status: 'failed', failure: { code: 'crashed', message, isRetryable } },
      at: now,
    });
  }

  #restoreDueTimes(): void {
    this.#ledger.findAgain(this.#clock.now() + setBackMs);
    this.#index();
  }

  /** Indexes due times from the rows, without those that an actor has received already. */
  #index(): void {
    this.#count = this.#schedules.count();
    this.#calendar.clearDues();
    for (const { id, nextAt } of this.#schedules.dues()) {
      const lastDue = this.#actors.lastDueOf(id);
      const row = lastDue !== undefined && nextAt <= lastDue ? this.#schedules.automation(id) : undefined;
      this.#calendar.setDue(id, row && lastDue !== undefined ? this.#ledger.nextAfter(row, lastDue) : nextAt);
    }
  }

  #dispatchDue(): void {
    for (const [id] of this.#ends) this.#safely(() => this.#moved(id, this.#actors.snapshotOf(id)));
    const now = this.#clock.now();
    this.#calendar.handOut(now, {
      retry: (id) => this.#actors.send(id, { type: 'RETRY' }),
      due: (id, at) => this.#reportDue(id, at, now),
      onFault: this.#options.onFault,
    });
  }

  /** @returns the next due time */
  #reportDue(id: string, first: number, now: number): number | null {
    const row = this.#schedules.automation(id);
    if (!row?.enabled) return null;
    const { due, next } = this.#ledger.duesOf(row, first, now);
    this.#actors.send(id, { type: 'DUE', due });
    return next;
  }

  #dropped(id: string, { due, as }: AutomationEmitted): void {
    if (due.count > 0) this.#ledger.drop(id, due, as, this.#clock.now());
  }

  /** After every transition: writes state that must outlive the process, at once with the end of the run that led there. */
  #moved(id: string, snapshot: AutomationSnapshot | undefined): void {
    if (snapshot?.status === 'done') {
      this.#options.onVanished(id);
      return;
    }
    const row = this.#schedules.automation(id);
    if (!row) return;
    // The start of a retry is written with its run.
    const retry = snapshot && !snapshot.hasTag('running') ? retryOf(snapshot) : row.progress.retry;
    const failures = snapshot?.context.failures ?? row.progress.failures;
    const end = this.#ends.get(id);
    this.#calendar.setRetry(id, snapshot?.hasTag('backingOff') ? (retry?.at ?? null) : null);
    if (end || failures !== row.progress.failures || retry?.at !== row.progress.retry?.at) {
      this.#schedules.transaction(() => {
        if (end) this.#ledger.end(end);
        this.#schedules.put({ ...row, progress: { ...row.progress, failures, retry } });
      });
      this.#ends.delete(id);
    }
    this.#options.onChange(id);
  }
}

/** The retry of an automation that pauses or waits in line for it. */
function retryOf({ context }: AutomationSnapshot): StoredRetry | null {
  const { work, retryAt } = context;
  return work && retryAt !== null ? { ...work, at: retryAt } : null;
}
