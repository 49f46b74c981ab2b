import { statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { migrations } from '../../../src/agent/store/migrations.ts';
import type { TraceStore } from '../../../src/agent/thread-store.ts';
import { event, opened, temporaryDirectory, thread, turn } from './helpers.ts';

const text = 'what the agent has said in a sentence or two, '.repeat(4);

async function fill(traces: TraceStore, count: number, sessionKey: string): Promise<void> {
  for (let number = 0; number < count; number += 1) {
    traces.append(event(sessionKey, { data: { number, text } }));
    if (number % 1_000 === 999) await new Promise(setImmediate);
  }
  traces.flush();
}

/** Looks into the database from outside. */
function outside(directory: string) {
  const file = join(directory, 'state.db');
  const numberOf = (sql: string): number => {
    const reader = new DatabaseSync(file, { readOnly: true });
    try {
      return Number(Object.values(reader.prepare(sql).get() ?? {})[0]);
    } finally {
      reader.close();
    }
  };
  return {
    rows: () => numberOf('SELECT count(*) FROM traceEvents'),
    remains: () => numberOf('SELECT count(*) FROM traceRemains'),
    free: () => numberOf('PRAGMA freelist_count'),
    pages: () => numberOf('PRAGMA page_count'),
    vacuum: () => numberOf('PRAGMA auto_vacuum'),
    bytes: () => statSync(file).size,
    logBytes: () => statSync(`${file}-wal`).size,
  };
}

t.test('a long session is deleted in slices, and the files shrink', { timeout: 600_000 }, async (t) => {
  const directory = temporaryDirectory(t);
  const { traces } = opened(t, directory);
  const see = outside(directory);
  await fill(traces, 500, 'kept');
  await fill(traces, 100_000, 'long');
  let turns = 0;
  const turning = setInterval(() => (turns += 1), 1);
  t.teardown(() => clearInterval(turning));
  const pages = see.pages();
  t.equal(traces.deleteSession('long'), true);
  t.equal(traces.session('long'), undefined, 'out of sight at once');
  t.match(traces.totals(), { sessionCount: 1, eventCount: 500 });
  t.ok(see.rows() > 90_000, 'but not yet off the disk');
  while (see.remains() > 0) await sleep(2);
  t.equal(see.rows(), 500);
  t.ok(turns >= 8, `the loop has turned ${turns} times meanwhile`);
  while (see.free() > 0 || see.logBytes() > 0) await sleep(2);
  t.ok(see.pages() < pages / 20, `${see.pages()} of ${pages} pages are left`);
  t.ok(see.bytes() <= (see.pages() + 1) * 4_096, 'of the file too');
  t.equal(traces.events('kept', { limit: 1_000 }).events.length, 500);
});

t.test('deleting all but some sessions also drops their pending events', async (t) => {
  const directory = temporaryDirectory(t);
  const { traces } = opened(t, directory);
  for (const key of ['a', 'b', 'c', 'd']) await fill(traces, 3, key);
  traces.append(event('a'));
  traces.append(event('b'));
  traces.append(event('only waiting'));
  t.equal(traces.deleteAllSessions(['b', 'd', 'nobody']), 3);
  traces.flush();
  t.strictSame(
    traces.sessions({ limit: 9 }).map(({ sessionKey, eventCount }) => [sessionKey, eventCount]),
    [
      ['d', 3],
      ['b', 4],
    ],
  );
  t.match(traces.totals(), { sessionCount: 2, eventCount: 7 });
  while (outside(directory).rows() !== 7) await sleep(2);
  t.equal(traces.deleteAllSessions(), 2);
  t.equal(traces.deleteAllSessions(['b']), 0);
});

t.test('an event after a deletion starts an empty session', async (t) => {
  const directory = temporaryDirectory(t);
  const { traces } = opened(t, directory);
  traces.append(event('a', { type: 'session.started', data: { displayName: 'Old' } }));
  traces.append(event('a', { type: 'turn.started', data: { text: 'old words' } }));
  traces.flush();
  traces.append(event('a', { type: 'thinking' }));
  t.equal(traces.deleteSession('a'), true);
  traces.flush();
  t.equal(traces.session('a'), undefined, 'what had waited does not bring it back');
  const at = '2026-01-02T00:00:00.000Z';
  traces.append(event('a', { type: 'response', at, data: { text: 'new' } }));
  traces.append(event('a', { type: 'turn.completed', at, data: { status: 'completed' } }));
  traces.flush();
  const session = traces.session('a');
  t.match(session, { startedAt: at, responseCount: 1, thinkingCount: 0, turnCount: 0, lastStatus: 'completed' });
  t.notOk(session?.displayName);
  t.notOk(session?.firstInput);
  while (outside(directory).rows() !== 2) await sleep(2);
  t.strictSame(
    traces.events('a', { limit: 9 }).events.map(({ type }) => type),
    ['response', 'turn.completed'],
  );
});

/** A database as the first version made it. */
function makeOld(directory: string): void {
  const old = new DatabaseSync(join(directory, 'state.db'));
  old.exec(`PRAGMA journal_mode = WAL; ${migrations[0]}; PRAGMA user_version = 1`);
  const put = old.prepare(
    `INSERT INTO traceSessions VALUES (?, ?, 'then', 'then', NULL, NULL, ?, 2, 3, 4, 1, 0, ?, 100, 10, ?)`,
  );
  put.run(1, 'a', 1, 0, 12);
  put.run(2, 'b', 2, 1, 30);
  const running = turn('b', 2, { status: 'running' });
  old
    .prepare("INSERT INTO threads (key, id, lastActiveAt, json) VALUES (1, 'b', ?, ?)")
    .run('then', JSON.stringify(thread('b')));
  old
    .prepare("INSERT INTO turns (thread, id, number, status, json) VALUES (1, ?, 2, 'running', ?)")
    .run(running.id, JSON.stringify(running));
  old.close();
}

t.test('a database of the first version is counted once, and its file can shrink afterwards', async (t) => {
  const directory = temporaryDirectory(t);
  makeOld(directory);
  t.equal(outside(directory).vacuum(), 0);
  const { traces } = opened(t, directory);
  t.equal(outside(directory).vacuum(), 2);
  t.match(traces.totals(), { sessionCount: 2, turnCount: 3, thinkingCount: 4, errorCount: 1, eventCount: 42 });
  t.equal(traces.totals().failedTurnCount, 0);
  t.strictSame(
    traces.sessions({ limit: 9, status: 'running' }).map(({ sessionKey }) => sessionKey),
    ['b'],
    'what ran when it was left',
  );
  traces.deleteSession('a');
  t.match(traces.totals(), { sessionCount: 1, turnCount: 2, eventCount: 30 });
});

t.test('a large database of the first version keeps its size and reuses its space', async (t) => {
  const directory = temporaryDirectory(t);
  makeOld(directory);
  const old = new DatabaseSync(join(directory, 'state.db'));
  old.exec(`INSERT INTO threads (id, lastActiveAt, json) VALUES ('ballast', '', printf('%.*c', 70000000, 'x'))`);
  old.close();
  const store = opened(t, directory);
  const see = outside(directory);
  t.equal(see.vacuum(), 0);
  await fill(store.traces, 20_000, 'long');
  const pages = see.pages();
  store.traces.deleteSession('long');
  while (see.remains() > 0) await sleep(2);
  t.ok(see.free() > 1_000);
  await fill(store.traces, 20_000, 'next');
  t.ok(see.pages() <= pages + 50);
});
