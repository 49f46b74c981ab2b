/** The start of a Hub starts the agent servers of workspaces with unfinished turns, and no other one. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import t from 'tap';
import { workspaceStateDirectory } from '../../src/config/index.ts';
import {
  agentServerFixture,
  eventually,
  isAlive,
  killIfThere,
  makeWorkspace,
  quick,
  startTestHub,
  temporaryDirectory,
} from './harness.ts';

const agentServer = agentServerFixture('well-behaved.ts');
const home = temporaryDirectory(t);
const table = 'CREATE TABLE turnActors (turn INTEGER PRIMARY KEY, json TEXT NOT NULL) STRICT;';
const hoursAgo = (hours: number) => JSON.stringify({ savedAt: new Date(Date.now() - hours * 3_600_000).toISOString() });
const rows = (...facts: readonly string[]) =>
  facts.map((json, index) => `INSERT INTO turnActors VALUES (${index + 1}, '${json}');`).join('');
/** Facts of a turn whose wait for a quota has ended these hours ago. */
const waited = (hours: number) => {
  const quotaUntil = Date.now() - hours * 3_600_000;
  return JSON.stringify({
    ...JSON.parse(hoursAgo(100)),
    state: 'waitingForQuota',
    context: { patience: { quotaUntil } },
  });
};
/** Facts of two turns that continue, and of four that do not. */
const mixed = rows(hoursAgo(1), hoursAgo(25), waited(-1), waited(25), '{}', '{"savedAt":');

/** Content of the database of a workspace: SQL, bytes of another kind, or null without a file. */
const databases = {
  damaged: Buffer.from('SQLite format 3\0 and then nothing of it'.padEnd(4_096, '?')),
  foreign: Buffer.from('no database\n'.repeat(1_000)),
  directory: 'directory',
  absent: null,
  withoutTable: 'CREATE TABLE turns (key INTEGER);',
  hostileView: `CREATE VIEW turnActors AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n;`,
  finished: table,
  stoppedByUser: table + mixed,
  stoppedForGood: table + mixed,
  tooOld: table + rows(hoursAgo(25)),
  invalid: table + rows('{"savedAt":'),
  unfinished: table + rows(hoursAgo(1)),
} as const;
type Name = keyof typeof databases;
const names = Object.keys(databases) as Name[];
const never = { ...quick, Turns: { Resume: 'never' } };
const workspaces = new Map(
  names.map((name) => [name, makeWorkspace(t, name === 'stoppedForGood' ? never : quick, name)]),
);
/** Workspaces with unfinished turns that the user did not stop: the turns that do not continue get their end. */
const started: readonly Name[] = ['unfinished', 'tooOld', 'invalid'];
const pathOf = (name: Name): string => workspaces.get(name) ?? '';

function writeDatabase(name: Name): void {
  const directory = workspaceStateDirectory(home, pathOf(name));
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const file = join(directory, 'state.db');
  const content = databases[name];
  if (content === null) return;
  if (content === 'directory') mkdirSync(file);
  else if (typeof content !== 'string') writeFileSync(file, content);
  else {
    const database = new DatabaseSync(file);
    database.exec(`PRAGMA journal_mode = WAL; ${content}`);
    database.close();
  }
}

t.test('a Hub starts a workspace with unfinished turns, however damaged other databases are', async (t) => {
  const first = await startTestHub(t, { home, agentServer });
  const pids = await Promise.all(names.map(async (name) => (await first.ensure(pathOf(name))).pid ?? 0));
  for (const name of ['stoppedByUser', 'stoppedForGood'] as const) {
    await first.call('POST', '/v1/appservers/stop', { workspacePath: pathOf(name) });
  }
  await first.kill('SIGKILL');
  for (const pid of pids) killIfThere(pid);
  await eventually(() => !pids.some(isAlive) || undefined, 'every server has ended');
  for (const name of names) writeDatabase(name);

  const next = await startTestHub(t, { home, agentServer });
  const running = async (name: Name) => {
    const record = await next.record(pathOf(name));
    return record.state === 'running' ? record : undefined;
  };
  for (const name of started) {
    const record = await eventually(() => running(name), `${name} runs`);
    t.notOk(pids.includes(record.pid ?? 0), 'in a new process');
  }
  t.equal((await next.record(pathOf('stoppedByUser'))).turnsResumed, 2, 'turns that are too old do not count');
  t.equal((await next.record(pathOf('stoppedForGood'))).turnsResumed, 0, 'no turn continues there');
  for (const name of names.filter((each) => !started.includes(each))) {
    const { state } = await next.record(pathOf(name));
    t.ok(state === 'stopped' || state === 'exited', `${name} is ${state}`);
  }
  const said = next.output().match(/could not read the unfinished turns/g) ?? [];
  t.equal(said.length, 3, 'one line for each unreadable database');
  t.match(next.output(), /starting an agent server for its unfinished turns/);

  await next.shutdown();
  const third = await startTestHub(t, { home, agentServer });
  const again = async () => (await third.record(pathOf('unfinished'))).state === 'running' || undefined;
  await eventually(again, 'a stop of the Hub is not a stop by the user');
  t.equal((await third.record(pathOf('stoppedByUser'))).state, 'stopped', 'a stop by the user outlives two Hubs');
  await third.shutdown();
});
