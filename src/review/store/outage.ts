import { createActor } from 'xstate';
import {
  type DatabaseOutageEmitted,
  type DatabaseOutageInput,
  databaseOutageMachine,
} from '../../../machines/index.ts';
import type { Logger } from '../../log/index.ts';
import type { Database } from './database.ts';
import { isOutage, ReviewStoreError } from './errors.ts';
import { limits } from './limits.ts';

const messages = {
  'outage.began': 'the database is unavailable; work waits',
  'outage.continues': 'the database is still unavailable; work waits',
  'outage.ended': 'the database is available again',
} as const;

/**
 * Logs outages of the database: a line at the beginning, one a minute with a count, and one at the end.
 * @returns `database`, whose calls are observed
 */
export function withOutageLog(
  database: Database,
  logger: Logger,
  { recoveryMs, reminderMs }: DatabaseOutageInput = limits,
): Database {
  const actor = createActor(databaseOutageMachine, {
    input: { recoveryMs, reminderMs },
  });
  actor.on('*', ({ type, lastError, failures, durationMs }: DatabaseOutageEmitted) => {
    const about = { failures, seconds: Math.round(durationMs / 1_000) };
    if (type === 'outage.ended') logger.info(messages[type], about);
    else logger.warn(messages[type], { ...about, problem: lastError });
  });
  actor.start();
  let isAvailable = true;

  async function observed<T>(call: Promise<T>): Promise<T> {
    try {
      const result = await call;
      if (!isAvailable) actor.send({ type: 'SUCCEEDED' });
      isAvailable = true;
      return result;
    } catch (error) {
      if (error instanceof ReviewStoreError && isOutage(error)) {
        isAvailable = false;
        actor.send({ type: 'FAILED', at: performance.now(), message: error.message });
      }
      throw error;
    }
  }

  return {
    kind: database.kind,
    now: database.now,
    read: (work) => observed(database.read(work)),
    snapshot: (work) => observed(database.snapshot(work)),
    write: (work) => observed(database.write(work)),
    statement: (work) => observed(database.statement(work)),
    lock: (rows, name) => database.lock(rows, name),
    async close() {
      actor.stop();
      await database.close();
    },
  };
}
