import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ScheduleStore, StoredAutomation } from '../agent/index.ts';
import { AgentError } from '../agent/index.ts';
import { type Automation, type AutomationsState, defaults } from '../protocol/index.ts';
import { systemClock } from './clock.ts';
import { isKnown } from './conversation.ts';
import type { AutomationsChange, AutomationsOptions } from './options.ts';
import {
  type AutomationChange,
  changedRow,
  dueOnceEnabled,
  invalid,
  type NewAutomation,
  newRow,
  notFound,
} from './rows.ts';
import { Runner } from './runner.ts';
import { automationView, stateOf } from './views.ts';

/** How long views are made in one go, before the event loop gets its turn. */
const sliceMs = 10;

/** Operations of users on jobs and tasks, while they run. Loaded with the first one. */
export class Book {
  readonly #schedules: ScheduleStore;
  readonly #runtime: AutomationsOptions['runtime'];
  readonly #onFault: AutomationsOptions['onFault'];
  readonly #now: () => number;
  readonly #runner: Runner;
  readonly #views = new Map<string, Automation>();
  readonly #listeners = new Set<(change: AutomationsChange) => void>();
  readonly #pending = new Set<string>();
  #emitting: NodeJS.Immediate | undefined;
  #revision = 0;
  #state: AutomationsState | undefined;

  constructor(options: AutomationsOptions) {
    const { clock = systemClock } = options;
    this.#schedules = options.schedules;
    this.#runtime = options.runtime;
    this.#onFault = options.onFault;
    this.#now = () => clock.now();
    this.#runner = new Runner({
      ...options,
      onChange: (id) => this.#changed(id),
      onVanished: (id) => this.#vanished(id),
    });
  }

  start(): Promise<void> {
    return this.#runner.start();
  }

  get isExpecting(): boolean {
    return this.#runner.isExpecting;
  }

  describe(): Readonly<Record<string, unknown>> {
    return this.#runner.describe();
  }

  /** @throws AgentError automationNotFound */
  read(id: string): Automation {
    return this.#view(this.#row(id));
  }

  /** Lists automations in the order of their creation. Yields to the event loop in between. */
  async list(kind?: Automation['kind']): Promise<Automation[]> {
    const all: Automation[] = [];
    let from = performance.now();
    for (const id of this.#schedules.ids(kind)) {
      const known = this.#views.get(id);
      // An automation that was removed in between has no row.
      const row = known ? undefined : this.#schedules.automation(id);
      const view = known ?? (row && this.#view(row));
      if (view) all.push(view);
      if (performance.now() - from < sliceMs) continue;
      await nextTurn();
      from = performance.now();
    }
    return all;
  }

  /** Returns the state of all automations, cached until something changes. */
  async state(): Promise<AutomationsState> {
    for (;;) {
      if (this.#state?.isRunning === this.#runner.isRunning) return this.#state;
      if (this.#state) this.#revise();
      const revision = this.#revision;
      const all = await this.list();
      // A change may have come while the state was built.
      if (revision !== this.#revision) continue;
      this.#state = stateOf(all, { revision, isRunning: this.#runner.isRunning }, this.#now());
    }
  }

  /** Reads rows and clock again. */
  refresh(): Promise<AutomationsState> {
    this.#views.clear();
    this.#revise();
    this.#runner.refresh();
    return this.state();
  }

  /** @throws AgentError automationInvalid, threadNotFound */
  async add(kind: Automation['kind'], input: NewAutomation): Promise<Automation> {
    if (this.#runner.count >= defaults.automations.maxAutomations) {
      throw invalid('tooMany', `there are ${this.#runner.count} already`);
    }
    this.#checkThread(input.binding);
    const row = await newRow(kind, input, this.#now());
    this.#schedules.put(row);
    this.#changed(row.id);
    this.#runner.added(row);
    return this.read(row.id);
  }

  /**
   * @param version last version that the caller has seen; undefined: any version
   * @throws AgentError automationNotFound, automationConflict, automationInvalid, threadNotFound
   */
  async update(id: string, change: AutomationChange, version?: number): Promise<Automation> {
    this.#checkVersion(this.#row(id), version);
    this.#checkThread(change.binding);
    const seen = this.#row(id);
    const wanted = await changedRow(seen, change, this.#now());
    const row = this.#row(id);
    this.#checkVersion(row, seen.version);
    // The automation's progress continued while the new values were read.
    const next = { ...wanted, progress: row.progress, ...(wanted.nextAt === seen.nextAt && { nextAt: row.nextAt }) };
    return this.#replace(row, next);
  }

  /** @throws AgentError automationNotFound, automationInvalid */
  setEnabled(id: string, enabled: boolean): Automation {
    const row = this.#row(id);
    if (row.enabled === enabled) return this.#view(row);
    const now = this.#now();
    const nextAt = enabled ? dueOnceEnabled(row, now) : row.nextAt;
    return this.#replace(row, { ...row, enabled, nextAt, updatedAt: now, version: row.version + 1 });
  }

  /** @throws AgentError automationNotFound, automationInvalid when a run is in progress or about to begin */
  run(id: string): Automation {
    this.#row(id);
    if (!this.#runner.isRunning) throw invalid('stopping', 'nothing is run now');
    const state = this.#runner.stateOf(id);
    if (state === 'running' || state === 'queued') throw invalid('running', `it is ${state} already`);
    let at = this.#now();
    // A run is named by its time.
    while (this.#schedules.run(id, at)) at += 1;
    this.#runner.run(id, at);
    return this.read(id);
  }

  /** @throws AgentError automationNotFound, automationInvalid when no run is in progress */
  cancel(id: string): Automation {
    this.#row(id);
    const state = this.#runner.stateOf(id);
    if (state !== 'running' && state !== 'queued' && state !== 'backingOff') {
      throw invalid('notRunning', 'nothing of it is under way');
    }
    this.#runner.cancel(id);
    return this.read(id);
  }

  /** Removes an automation and cancels its run. @returns whether there was one */
  remove(id: string): boolean {
    const row = this.#schedules.automation(id);
    if (!row) return false;
    const gone = this.#view(row);
    this.#schedules.delete(id);
    this.#views.delete(id);
    this.#pending.delete(id);
    this.#revise();
    this.#runner.removed(id);
    setImmediate(() => this.#emit({ automation: gone, removed: true }));
    return true;
  }

  subscribe(listener: (change: AutomationsChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async close(): Promise<void> {
    await this.#runner.close();
    clearImmediate(this.#emitting);
    this.#listeners.clear();
  }

  #row(id: string): StoredAutomation {
    const row = this.#schedules.automation(id);
    if (!row) throw notFound(id);
    return row;
  }

  #view(row: StoredAutomation): Automation {
    const known = this.#views.get(row.id);
    if (known) return known;
    const runs = this.#schedules.runs(row.id, { limit: defaults.automations.recentRuns });
    const view = automationView(row, this.#runner.livingOf(row), runs);
    this.#views.set(row.id, view);
    return view;
  }

  #replace(before: StoredAutomation, row: StoredAutomation): Automation {
    this.#schedules.put(row);
    this.#changed(row.id);
    this.#runner.changed(before, row);
    this.#views.delete(row.id);
    return this.read(row.id);
  }

  #checkVersion(row: StoredAutomation, version: number | undefined): void {
    if (version === undefined || version === row.version) return;
    throw new AgentError('automationConflict', { automationId: row.id, version: row.version });
  }

  /** @throws AgentError threadNotFound */
  #checkThread(binding: AutomationChange['binding']): void {
    if (binding?.mode !== 'thread' || isKnown(this.#runtime, binding.threadId)) return;
    throw new AgentError('threadNotFound', { threadId: binding.threadId });
  }

  #vanished(id: string): void {
    try {
      this.remove(id);
    } catch (error) {
      this.#onFault(error);
    }
  }

  #revise(): void {
    this.#revision += 1;
    this.#state = undefined;
  }

  /** Reports a change soon: a response precedes its effects, and several changes in a row are reported once. */
  #changed(id: string): void {
    this.#views.delete(id);
    this.#revise();
    this.#pending.add(id);
    this.#emitting ??= setImmediate(() => {
      this.#emitting = undefined;
      const ids = [...this.#pending];
      this.#pending.clear();
      for (const each of ids) this.#notify(each);
    });
  }

  #notify(id: string): void {
    if (this.#listeners.size === 0) return;
    try {
      const row = this.#schedules.automation(id);
      if (row) this.#emit({ automation: this.#view(row), removed: false });
    } catch (error) {
      this.#onFault(error);
    }
  }

  #emit(change: AutomationsChange): void {
    for (const listener of this.#listeners) {
      try {
        listener(change);
      } catch (error) {
        this.#onFault(error);
      }
    }
  }
}
