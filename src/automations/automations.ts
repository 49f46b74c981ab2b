import { AgentError } from '../agent/index.ts';
import type { Automation, AutomationRun, AutomationsState } from '../protocol/index.ts';
import type { Book } from './book.ts';
import type { AutomationsChange, AutomationsOptions } from './options.ts';
import type { AutomationChange, NewAutomation } from './rows.ts';
import { StoredAutomations } from './stored.ts';

/**
 * The jobs and tasks of one workspace. The code that runs them is loaded when there are any, or when the first is made: most
 * workspaces have none, and pay for none.
 */
export class Automations {
  readonly #options: AutomationsOptions;
  readonly #stored: StoredAutomations;
  readonly #listeners = new Set<(change: AutomationsChange) => void>();
  #loading: Promise<Book> | undefined;
  #book: Book | undefined;
  #isClosed = false;

  constructor(options: AutomationsOptions) {
    this.#options = options;
    this.#stored = new StoredAutomations(options.schedules);
    watchLeftRuns(options);
  }

  /** Begins to watch due times, when there are any. @throws StorageError */
  async start(): Promise<void> {
    if (this.#options.settings.isEnabled && this.#exist()) await this.#load();
  }

  /** Whether a run is in progress, or will become due: a server that is stopped as idle would miss it. */
  get isExpecting(): boolean {
    return this.#book?.isExpecting ?? (this.#loading !== undefined && !this.#isClosed);
  }

  /** Facts for health. */
  describe(): Readonly<Record<string, unknown>> {
    if (!this.#options.settings.isEnabled) return { scheduler: 'disabled' };
    return this.#book?.describe() ?? { scheduler: 'notStarted' };
  }

  async state(): Promise<AutomationsState> {
    const book = await this.#reader();
    return book ? book.state() : this.#atRest();
  }

  /** Reads rows and clock now. @returns the new state */
  async refresh(): Promise<AutomationsState> {
    const book = await this.#reader();
    return book ? book.refresh() : this.#atRest();
  }

  /** Jobs, the next one first; tasks, the oldest first. */
  async list(kind: Automation['kind']): Promise<readonly Automation[]> {
    const { cron, tasks } = await this.state();
    return kind === 'cron' ? cron : tasks;
  }

  /** @throws AgentError automationNotFound */
  async read(id: string): Promise<Automation> {
    const book = await this.#reader();
    return book ? book.read(id) : this.#stored.read(id);
  }

  /** Newest due time first. @throws AgentError automationNotFound */
  async runs(
    id: string,
    range: { readonly limit: number; readonly before?: string | undefined },
  ): Promise<{ readonly data: readonly AutomationRun[]; readonly next?: string }> {
    return this.#stored.runs(id, range);
  }

  /** @throws AgentError automationInvalid, threadNotFound, automationsDisabled; StorageError */
  async add(kind: Automation['kind'], input: NewAutomation): Promise<Automation> {
    return (await this.#writer()).add(kind, input);
  }

  /** @throws AgentError automationNotFound, automationConflict, automationInvalid, threadNotFound, automationsDisabled */
  async update(id: string, change: AutomationChange, version?: number): Promise<Automation> {
    return (await this.#writer(id)).update(id, change, version);
  }

  /** @throws AgentError automationNotFound, automationInvalid, automationsDisabled */
  async setEnabled(id: string, enabled: boolean): Promise<Automation> {
    return (await this.#writer(id)).setEnabled(id, enabled);
  }

  /** @throws AgentError automationNotFound, automationInvalid, automationsDisabled */
  async run(id: string): Promise<Automation> {
    return (await this.#writer(id)).run(id);
  }

  /** @throws AgentError automationNotFound, automationInvalid, automationsDisabled */
  async cancel(id: string): Promise<Automation> {
    return (await this.#writer(id)).cancel(id);
  }

  /**
   * Removes an automation with its history, and cancels its run.
   * @returns whether there was one
   * @throws AgentError automationsDisabled
   */
  async remove(id: string): Promise<boolean> {
    return this.#options.schedules.automation(id) ? (await this.#writer(id)).remove(id) : false;
  }

  /** Calls `listener` for every change. Returns a function that ends the subscription. */
  subscribe(listener: (change: AutomationsChange) => void): () => void {
    // A listener that subscribes twice is called twice.
    const own = (change: AutomationsChange) => listener(change);
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  /** Begins no more runs. Resolves when the current runs have ended; the runtime's own end ends them. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await (await this.#loading?.catch(() => undefined))?.close();
  }

  #exist(): boolean {
    return this.#options.schedules.count() > 0;
  }

  /** Loads the actors, which have newer facts than the rows; undefined when automations are disabled or absent. */
  async #reader(): Promise<Book | undefined> {
    if (!this.#options.settings.isEnabled || this.#isClosed) return undefined;
    return this.#loading !== undefined || this.#exist() ? this.#load() : undefined;
  }

  /** @throws AgentError automationsDisabled; automationNotFound, so that a missing automation loads no code */
  async #writer(id?: string): Promise<Book> {
    if (!this.#options.settings.isEnabled) throw new AgentError('automationsDisabled', {});
    if (this.#isClosed) throw new AgentError('overloaded', {}, 'the server is shutting down');
    if (id !== undefined && !this.#options.schedules.automation(id)) {
      throw new AgentError('automationNotFound', { automationId: id });
    }
    return this.#load();
  }

  async #atRest(): Promise<AutomationsState> {
    const stored = await this.#stored.state();
    // Without rows, no automation would run.
    return { ...stored, isRunning: this.#options.settings.isEnabled && !this.#isClosed };
  }

  #load(): Promise<Book> {
    this.#loading ??= this.#open().catch((error: unknown) => {
      this.#loading = undefined;
      throw error;
    });
    return this.#loading;
  }

  async #open(): Promise<Book> {
    const { Book } = await import('./book.ts');
    const book = new Book(this.#options);
    book.subscribe((change) => {
      for (const listener of this.#listeners) listener(change);
    });
    await book.start();
    this.#book = book;
    return book;
  }
}

/**
 * Stores the first effect of runs whose turns continue from an earlier process. The turns begin before the code that runs automations
 * is loaded, and also where automations are disabled now.
 */
function watchLeftRuns({ schedules, runtime }: AutomationsOptions): void {
  for (const { automationId, scheduledFor, threadId, turnId } of schedules.unfinishedRuns()) {
    if (threadId === undefined || turnId === undefined) continue;
    runtime.turns.watchEffects(threadId, turnId, (effect) => {
      const run = schedules.run(automationId, scheduledFor);
      if (run?.status === 'running' && run.effect === undefined) schedules.updateRun({ ...run, effect });
    });
  }
}
