import { messageOf } from '../../../lib/index.ts';
import type { ExpectedChanges, FileCheckpoints, FilePlace } from '../types.ts';
import type { TurnContext } from './context.ts';

/**
 * Files of the workspace before and after one turn. A checkpoint that fails is reported once and stops nothing: the turn can then not
 * be taken back with its files.
 */
export class TurnFiles {
  readonly #turn: TurnContext;
  readonly #checkpoints: FileCheckpoints | undefined;
  readonly #place: FilePlace;
  #hasFailed = false;
  #isSettled = false;

  constructor(turn: TurnContext) {
    this.#turn = turn;
    this.#checkpoints = turn.thread.checkpoints;
    this.#place = { ...turn.place, workspacePath: turn.thread.workspacePath };
  }

  begin(changes: ExpectedChanges): void {
    this.#checkpoints?.begin(this.#place, changes);
  }

  /** Continues the checkpoint of a turn that an earlier process began. */
  resume(changes: ExpectedChanges): void {
    this.#checkpoints?.resume(this.#place, changes);
  }

  /** Resolves when a restore that a crash had interrupted is completed. Undefined: no restore was interrupted. */
  get recovered(): Promise<void> | undefined {
    return this.#checkpoints?.recovered();
  }

  /** Resolves when the files are saved in their state before the turn changed them. Never rejects. */
  async secure(): Promise<void> {
    if (!this.#hasFailed) await this.#try(() => this.#checkpoints?.secure(this.#place));
  }

  /** Does work that may change files; a crash in it leaves a mark of the time. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    const end = this.#hasFailed ? undefined : this.#checkpoints?.working(this.#place);
    try {
      return await work();
    } finally {
      end?.();
    }
  }

  /** Saves the files at the end of the turn. Undefined: there is nothing to save. Never rejects. */
  settle(): Promise<void> | undefined {
    if (this.#isSettled) return undefined;
    this.#isSettled = true;
    const settling = this.#checkpoints?.settle(this.#place);
    return settling && this.#try(() => settling);
  }

  async #try(work: () => Promise<void> | undefined): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (this.#hasFailed) return;
      this.#hasFailed = true;
      const { services, place, record } = this.#turn;
      const message = `The files could not be saved, so this turn cannot be taken back with them: ${services.clean(messageOf(error))}.`;
      record.publish({ method: 'system/event', params: { ...place, kind: 'checkpointFailed', message } });
    }
  }
}
