import { existsSync, type FSWatcher, watch } from 'node:fs';
import { basename, dirname } from 'node:path';
import { fromCallback } from 'xstate';
import type { AddressCommand, HubMachineEvent } from '../../../machines/index.ts';
import { messageOf } from '../../lib/index.ts';
import type { Logger } from '../../log/index.ts';
import { defaults } from '../../protocol/index.ts';
import { monotonicMs } from '../../supervise/index.ts';
import type { PublishedAddress } from '../address.ts';
import type { OwnedFile } from '../credentials.ts';

const { addressCheckMs, addressRestMs } = defaults.hub;
/** Pause after a change: a new file in a directory that is being removed would stop the removal half-way. */
const settleMs = 50;

/**
 * The `watchAddress` actor: checks the lock file whenever its directory reports a change, and now and then where no such
 * reports exist. Publishes it again when the machine asks for it, at most once in a while: another program may fight us. Other files
 * of the Hub are saved again when they are missing and were there before.
 */
export function watchAddress(addressOf: () => PublishedAddress, filesOf: () => readonly OwnedFile[], logger: Logger) {
  return fromCallback<AddressCommand>(({ sendBack, receive }) => {
    const watched = new AddressWatch(addressOf(), filesOf(), logger, sendBack);
    receive(() => watched.publish());
    return () => watched.close();
  });
}

/** Checks the lock file and the other files of one Hub, until it is closed. */
class AddressWatch {
  readonly #address: PublishedAddress;
  readonly #files: readonly OwnedFile[];
  readonly #logger: Logger;
  readonly #sendBack: (event: HubMachineEvent) => void;
  readonly #seen = new Set<string>();
  readonly #timer: NodeJS.Timeout;
  #watcher: FSWatcher | undefined;
  #resting: NodeJS.Timeout | undefined;
  #publishedAt = Number.NEGATIVE_INFINITY;
  #lastFailure = '';

  constructor(
    address: PublishedAddress,
    files: readonly OwnedFile[],
    logger: Logger,
    sendBack: (event: HubMachineEvent) => void,
  ) {
    this.#address = address;
    this.#files = files;
    this.#logger = logger;
    this.#sendBack = sendBack;
    this.#watchDirectory();
    this.#timer = setInterval(() => this.#check(), addressCheckMs).unref();
    this.#check();
  }

  close(): void {
    clearInterval(this.#timer);
    clearTimeout(this.#resting);
    this.#watcher?.close();
  }

  #checkIn(ms: number): void {
    this.#resting ??= setTimeout(() => {
      this.#resting = undefined;
      this.#check();
    }, ms).unref();
  }

  #check(): void {
    const rest = this.#publishedAt + addressRestMs - monotonicMs();
    if (rest > 0) {
      this.#checkIn(rest);
      return;
    }
    const problem = this.#problemNow();
    if (problem !== null) this.#sendBack({ type: 'ADDRESS.LOST', problem });
  }

  #problemNow(): string | null {
    const [lost] = this.#lostFiles();
    return this.#address.problem() ?? (lost ? `${basename(lost.file)} is missing` : null);
  }

  #lostFiles(): OwnedFile[] {
    return this.#files.filter(({ file }) => {
      if (!existsSync(file)) return this.#seen.has(file);
      this.#seen.add(file);
      return false;
    });
  }

  async #saveLost(): Promise<void> {
    for (const lost of this.#lostFiles()) {
      const { file } = lost;
      try {
        await lost.save();
        this.#logger.warn('saved a missing file again', { file });
      } catch (error) {
        this.#logger.error('could not save a missing file again', { file, error });
      }
    }
  }

  /** Publishes the address again unless it is intact. */
  publish(): void {
    const problem = this.#problemNow();
    if (problem === null) return;
    this.#publishedAt = monotonicMs();
    try {
      if (!this.#address.publishAgain()) {
        this.#sendBack({ type: 'CLAIM.LOST' });
        return;
      }
      this.#lastFailure = '';
      this.#watchDirectory();
      // The directory may have been removed with all files.
      void this.#saveLost();
      this.#logger.warn('published hub.lock again', { file: this.#address.file, problem });
      this.#sendBack({ type: 'ADDRESS.PUBLISHED' });
    } catch (error) {
      this.#reportFailure(messageOf(error));
    }
  }

  /** Logs a repeated failure only once, because the check continues. */
  #reportFailure(failure: string): void {
    if (failure !== this.#lastFailure)
      this.#logger.error('could not publish hub.lock again; clients do not find this Hub', {
        file: this.#address.file,
        failure,
      });
    this.#lastFailure = failure;
    this.#sendBack({ type: 'ADDRESS.UNPUBLISHED', error: failure });
  }

  /** Watches the current directory: the watcher of a removed directory reports no further events. */
  #watchDirectory(): void {
    this.#watcher?.close();
    try {
      const directory = dirname(this.#address.file);
      // The kernel reports the removal of the directory with the directory's own name.
      const names: (string | null)[] = [basename(this.#address.file), basename(directory), null];
      this.#watcher = watch(directory, { persistent: false }, (_, changed) => {
        this.#lostFiles();
        if (names.includes(changed)) this.#checkIn(settleMs);
      }).on('error', () => this.#watcher?.close());
    } catch (error) {
      this.#logger.debug('hub.lock is checked now and then only', { error });
    }
  }
}
