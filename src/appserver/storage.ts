/** The databases of a workspace, and the handling of writes that the disk refuses. */
import { type DayLedger, type DaySpending, openStore, StorageError, type Store } from '../agent/index.ts';
import { messageOf } from '../lib/index.ts';
import type { Logger } from '../log/index.ts';
import { StartupError } from './startup-error.ts';

/** @throws StartupError when the database cannot be used */
export function openStorage(stateDirectory: string, logger: Logger): Store {
  try {
    return openStore(stateDirectory, {
      onFault: faultOf(logger, 'traces cannot be written'),
      onDamage: (message) => logger.warn(message),
    });
  } catch (error) {
    if (!(error instanceof StorageError)) throw error;
    throw new StartupError(error.code === 'diskFull' ? 'system' : 'config', error.message, { cause: error });
  }
}

/** Returns a handler of storage errors. A full disk is not a bug: turns continue, and pending writes wait. */
export function faultOf(logger: Logger, what: string): (error: unknown) => void {
  return (error) => {
    if (error instanceof StorageError) logger.warn(what, { reason: error.message });
    else logger.bug(error);
  };
}

/** A ledger that cannot be written is reported; only a budget of the day stops a turn for it. */
export function spendingOf(ledger: DayLedger, logger: Logger): DaySpending {
  return {
    add(usd) {
      try {
        ledger.add(usd);
      } catch (error) {
        logger.warn('spending cannot be counted', { reason: messageOf(error) });
      }
    },
    today: () => ledger.today(),
  };
}
