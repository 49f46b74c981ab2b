import { randomBytes } from 'node:crypto';
import { defaults } from '../defaults.ts';
import type { StackLayout } from '../layout.ts';
import type { Plan } from '../stack-plan.ts';
import { Backup, pruneBackups } from './backups.ts';
import { after, type ChangeState, type StepState } from './change-state.ts';
import type { ChangeEntry, Former, JournalEntry, StepRecord } from './entries.ts';
import { Journal, type JournalContent, readJournal } from './journal.ts';
import { StackFiles } from './stack-files.ts';
import type { Did } from './step-effects.ts';

export interface LogOptions {
  readonly layout: StackLayout;
  readonly now: () => Date;
  /** Called after each line of the journal is on disk. */
  readonly onJournal?: ((entry: JournalEntry) => void | Promise<void>) | undefined;
}

type Fact = ChangeEntry extends infer E ? (E extends ChangeEntry ? Omit<E, 'change' | 'at'> : never) : never;

/** The one open change of a stack: its facts, each on disk before the next action, and the copies that it has put aside. */
export class ChangeLog {
  readonly backup: Backup;
  readonly files: StackFiles;
  readonly #options: LogOptions;
  readonly #journal: Journal;
  #state: ChangeState;

  private constructor(options: LogOptions, journal: Journal, state: ChangeState) {
    this.#options = options;
    this.#journal = journal;
    this.#state = state;
    this.backup = new Backup(options.layout, state.change);
    this.files = new StackFiles(options.layout.directory, state.change);
  }

  /** Begins the change of `plan`, or resumes the one that an earlier process left. @param content of the journal: its open change, if any, is of the same command */
  static async open(options: LogOptions, content: JournalContent, plan: Plan): Promise<ChangeLog> {
    const { onFailure, reveals, command } = plan;
    const attempt = { onFailure, reveals: [...reveals] };
    if (content.open) {
      const log = ChangeLog.take(options, content, content.open);
      log.backup.open();
      await log.note({ type: 'adopt', ...attempt });
      return log;
    }
    const at = options.now().toISOString();
    const change = `${at.replace(/[-:.]/g, '')}-${randomBytes(4).toString('hex')}`;
    const owed = [...(content.ended.findLast((record) => record.command === command)?.owed ?? [])];
    const entry = { type: 'begin', change, at, command, owed, ...attempt } as const;
    const journal = new Journal(options.layout);
    new Backup(options.layout, change).open();
    journal.repair(content.bytes);
    journal.append(entry);
    const log = new ChangeLog(options, journal, stateAfter(null, entry));
    await options.onJournal?.(entry);
    return log;
  }

  /** Takes over an unfinished change without a new entry. */
  static take(options: LogOptions, { bytes }: JournalContent, open: ChangeState): ChangeLog {
    const journal = new Journal(options.layout);
    journal.repair(bytes);
    return new ChangeLog(options, journal, open);
  }

  get state(): ChangeState {
    return this.#state;
  }

  /** State of a step that was begun and not reverted. */
  known(key: string): StepState | undefined {
    const step = this.#state.steps.get(key);
    return step?.state === 'undone' ? undefined : step;
  }

  /** Writes a fact down. It counts from the moment it is on disk. */
  async note(fact: Fact): Promise<void> {
    const entry = { ...fact, change: this.#state.change, at: this.#options.now().toISOString() } as ChangeEntry;
    this.#journal.append(entry);
    this.#state = stateAfter(this.#state, entry);
    await this.#options.onJournal?.(entry);
  }

  doing(key: string, step: StepRecord, former: Former): Promise<void> {
    return this.note({ type: 'doing', key, step, former });
  }

  did(key: string, result: Did): Promise<void> {
    return this.note({ type: 'did', key, result });
  }

  /** Ends the change. Nothing of a write that was killed stays, and the journal becomes short again. */
  async end(outcome: 'done' | 'undone' | 'undoFailed' | 'abandoned'): Promise<void> {
    this.backup.spendReserve();
    for (const { step } of this.#state.steps.values())
      if (step.do === 'writeFile' || step.do === 'removeFile') this.files.sweep(step.path);
    await this.note({ type: 'end', outcome });
    this.#tidy(outcome);
  }

  #tidy(outcome: 'done' | 'undone' | 'undoFailed' | 'abandoned'): void {
    const { layout } = this.#options;
    try {
      if (outcome === 'undone') this.backup.discard();
      const changes = readJournal(layout).ended.map(({ change }) => change);
      pruneBackups(layout, changes, defaults.keptBackups);
      this.#journal.compact();
    } catch {
      // The change has ended, even with leftovers: the end of the next one removes those of both.
    }
  }
}

function stateAfter(state: ChangeState | null, entry: ChangeEntry): ChangeState {
  const next = after(state, entry);
  if (next === null) throw new TypeError(`Nothing is known of the change ${entry.change}`);
  return next;
}
