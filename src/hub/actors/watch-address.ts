import { existsSync, type FSWatcher, watch } from 'node:fs';
import { basename, dirname } from 'node:path';
import { fromCallback } from 'xstate';
import type { AddressCommand } from '../../../machines/index.ts';
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
    const address = addressOf();
    const files = filesOf();
    const seen = new Set<string>();
    let watcher: FSWatcher | undefined;
    let resting: NodeJS.Timeout | undefined;
    let publishedAt = Number.NEGATIVE_INFINITY;
    let lastFailure = '';

    function checkIn(ms: number): void {
      resting ??= setTimeout(() => {
        resting = undefined;
        check();
      }, ms).unref();
    }

    function check(): void {
      const rest = publishedAt + addressRestMs - monotonicMs();
      if (rest > 0) {
        checkIn(rest);
        return;
      }
      const problem = problemNow();
      if (problem !== null) sendBack({ type: 'ADDRESS.LOST', problem });
    }

    function problemNow(): string | null {
      const [lost] = lostFiles();
      return address.problem() ?? (lost ? `${basename(lost.file)} is missing` : null);
    }

    function lostFiles(): OwnedFile[] {
      return files.filter(({ file }) => {
        if (!existsSync(file)) return seen.has(file);
        seen.add(file);
        return false;
      });
    }

    async function saveLost(): Promise<void> {
      for (const lost of lostFiles()) {
        const { file } = lost;
        try {
          await lost.save();
          logger.warn('saved a missing file again', { file });
        } catch (error) {
          logger.error('could not save a missing file again', { file, error });
        }
      }
    }

    function publish(): void {
      const problem = problemNow();
      if (problem === null) return;
      publishedAt = monotonicMs();
      try {
        if (!address.publishAgain()) {
          sendBack({ type: 'CLAIM.LOST' });
          return;
        }
        lastFailure = '';
        watchDirectory();
        // The whole directory may be new.
        void saveLost();
        logger.warn('published hub.lock again', { file: address.file, problem });
        sendBack({ type: 'ADDRESS.PUBLISHED' });
      } catch (error) {
        reportFailure(messageOf(error));
      }
    }

    /** The check continues, so the same failure is logged once. */
    function reportFailure(failure: string): void {
      if (failure !== lastFailure)
        logger.error('could not publish hub.lock again; clients do not find this Hub', { file: address.file, failure });
      lastFailure = failure;
      sendBack({ type: 'ADDRESS.UNPUBLISHED', error: failure });
    }

    /** Watches the present directory: a watcher of a removed one reports nothing more. */
    function watchDirectory(): void {
      watcher?.close();
      try {
        const directory = dirname(address.file);
        // The kernel reports the removal of the directory with the directory's own name.
        const names: (string | null)[] = [basename(address.file), basename(directory), null];
        watcher = watch(directory, { persistent: false }, (_, changed) => {
          lostFiles();
          if (names.includes(changed)) checkIn(settleMs);
        }).on('error', () => watcher?.close());
      } catch (error) {
        logger.debug('hub.lock is checked now and then only', { error });
      }
    }

    watchDirectory();
    const timer = setInterval(check, addressCheckMs).unref();
    receive(publish);
    check();
    return () => {
      clearInterval(timer);
      clearTimeout(resting);
      watcher?.close();
    };
  });
}
