import type { Turn } from '../../../protocol/index.ts';
import type { TurnDriver } from './driver.ts';
import type { TurnFiles } from './files.ts';
import type { TurnRecord } from './record.ts';

export interface TurnEndingOptions {
  readonly driver: Pick<TurnDriver, 'send' | 'state'>;
  readonly record: TurnRecord;
  readonly files: Pick<TurnFiles, 'settle'>;
  /** Parts whose open questions end with the turn. */
  readonly askers: readonly { withdraw(): void }[];
  /** Logs an error. */
  readonly onBug: (error: unknown) => void;
}

/** End of a turn, in the order files, store, clients: changes that a user makes after the event count as the user's. */
export class TurnEnding {
  readonly #options: TurnEndingOptions;
  readonly #ended = Promise.withResolvers<Turn>();
  #isPublished = false;

  constructor(options: TurnEndingOptions) {
    this.#options = options;
  }

  /** Resolves after the last event of the turn, when its thread can start another one. Never rejects. */
  get ended(): Promise<Turn> {
    return this.#ended.promise;
  }

  /** Saves the files, then the end. The machine hears when it is stored. */
  begin(): void {
    const { files, driver, onBug } = this.#options;
    const settling = files.settle();
    if (!settling) {
      this.#save();
      return;
    }
    this.#withdraw();
    void settling
      .then(() => {
        if (!this.#isPublished) this.#save();
      })
      .catch((error: unknown) => {
        onBug(error);
        driver.send({ type: 'STORAGE.FAILED', message: 'The turn could not be saved.' });
      });
  }

  /** @param isStored false: a failed write has ended the turn, and no later one is tried */
  publish(isStored: boolean): void {
    const { files, record } = this.#options;
    this.#isPublished = true;
    void files.settle();
    if (!isStored) {
      record.refuseWrites();
      this.#withdraw();
    }
    try {
      record.publishEnd(isStored);
    } finally {
      this.#ended.resolve(record.snapshot());
    }
  }

  /** Ends a turn that never began, without an event. */
  abandon(): void {
    this.#ended.resolve(this.#options.record.snapshot());
  }

  #save(): void {
    const { driver, record } = this.#options;
    const { end } = driver.state;
    if (end?.status === 'failed') record.items.addError(end.error);
    this.#withdraw();
    record.saveEnd(() => driver.send({ type: 'END.STORED' }));
  }

  #withdraw(): void {
    for (const asker of this.#options.askers) asker.withdraw();
  }
}
