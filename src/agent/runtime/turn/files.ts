import { messageOf } from '../../../lib/index.ts';
import type { ThreadEvent } from '../feed.ts';
import type { ExpectedChanges, FilePlace } from '../types.ts';
import type { TurnHost } from './host.ts';

export interface TurnFilesOptions {
  readonly host: TurnHost;
  readonly turnId: string;
  readonly publish: (event: ThreadEvent) => void;
}

/**
 * Files of the workspace before and after one turn. A checkpoint that fails is reported once and stops nothing: the turn can then not
 * be taken back with its files.
 */
export class TurnFiles {
  readonly #options: TurnFilesOptions;
  readonly #place: FilePlace;
  #hasFailed = false;
  #isSettled = false;

  constructor(options: TurnFilesOptions) {
    this.#options = options;
    const { threadId, workspacePath } = options.host;
    this.#place = { threadId, turnId: options.turnId, workspacePath };
  }

  begin(changes: ExpectedChanges): void {
    this.#options.host.checkpoints?.begin(this.#place, changes);
  }

  /** Resolves when a restore that a crash had interrupted is completed. Undefined: no restore was interrupted. */
  get recovered(): Promise<void> | undefined {
    return this.#options.host.checkpoints?.recovered();
  }

  /** Resolves when the files are saved in their state before the turn changed them. Never rejects. */
  async secure(): Promise<void> {
    if (!this.#hasFailed) await this.#try(() => this.#options.host.checkpoints?.secure(this.#place));
  }

  /** Does work that may change files; a crash in it leaves a mark of the time. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    const end = this.#hasFailed ? undefined : this.#options.host.checkpoints?.working(this.#place);
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
    const settling = this.#options.host.checkpoints?.settle(this.#place);
    return settling && this.#try(() => settling);
  }

  async #try(work: () => Promise<void> | undefined): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (this.#hasFailed) return;
      this.#hasFailed = true;
      const { host, turnId, publish } = this.#options;
      const message = `The files could not be saved, so this turn cannot be taken back with them: ${host.clean(messageOf(error))}.`;
      publish({
        method: 'system/event',
        params: { threadId: host.threadId, turnId, kind: 'checkpointFailed', message },
      });
    }
  }
}
