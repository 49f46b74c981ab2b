import { once } from 'node:events';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import t from 'tap';
import { enableWriteAheadLog, isBusy, loadSqlite } from '../../src/supervise/index.ts';

const { DatabaseSync } = loadSqlite();

/** Writes to a database in a thread of its own, and commits after `ms`. Resolves when it holds the lock. */
async function holdWriteLock(file: string, ms: number): Promise<Worker> {
  const code = `
    const { parentPort, workerData: { file, ms } } = require('node:worker_threads');
    const { DatabaseSync } = require('node:sqlite');
    const database = new DatabaseSync(file);
    database.exec('BEGIN IMMEDIATE; CREATE TABLE held (x)');
    parentPort.postMessage('holds');
    setTimeout(() => { database.exec('COMMIT'); database.close(); }, ms);`;
  const worker = new Worker(code, { eval: true, workerData: { file, ms } });
  await once(worker, 'message');
  return worker;
}

t.test('the switch to WAL waits for a connection that writes', async (t) => {
  const file = join(t.testdir(), 'new.db');
  const worker = await holdWriteLock(file, 300);
  const ended = once(worker, 'exit');
  const database = new DatabaseSync(file, { timeout: 60_000 });
  enableWriteAheadLog(database, 60_000);
  t.equal(database.prepare('PRAGMA journal_mode').get()?.['journal_mode'], 'wal');
  t.ok(database.prepare('SELECT count(*) AS n FROM held').get(), 'and sees what was committed');
  database.close();
  await ended;
});

t.test('the switch to WAL fails as busy when a connection writes for longer than allowed', async (t) => {
  const file = join(t.testdir(), 'new.db');
  const other = new DatabaseSync(file);
  other.exec('BEGIN IMMEDIATE');
  const database = new DatabaseSync(file);
  let failure: unknown;
  try {
    enableWriteAheadLog(database, 20);
  } catch (error) {
    failure = error;
  }
  t.ok(isBusy(failure));
  other.exec('COMMIT');
  enableWriteAheadLog(database, 0);
  t.equal(database.prepare('PRAGMA journal_mode').get()?.['journal_mode'], 'wal', 'and succeeds afterwards');
  for (const each of [database, other]) each.close();
});

t.test('a failure that is not a held lock is thrown at once', async (t) => {
  const database = new DatabaseSync(':memory:');
  database.close();
  t.throws(() => enableWriteAheadLog(database, 60_000), { code: 'ERR_INVALID_STATE' });
});
