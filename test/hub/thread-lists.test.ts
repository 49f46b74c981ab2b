/** List of the conversations of 200 workspaces: its time, its stored data, and its other work. Databases without servers. */
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { openStore } from '../../src/agent/index.ts';
import { workspaceStateDirectory } from '../../src/config/index.ts';
import { ThreadLists } from '../../src/hub/threads.ts';
import type { Workspace } from '../../src/hub/workspace.ts';
import { createLogger } from '../../src/log/index.ts';

const count = 200;
const silent = createLogger({ name: 'test', level: 'silent', pretty: false });
const home = mkdtempSync(join(tmpdir(), 'oratorio-thread-lists-'));
t.teardown(() => rmSync(home, { recursive: true, force: true }));
const all = { limit: 50, text: '', includeArchived: false };
/** Long ago: a file that was written just now may change again without a trace in its time. */
const writtenAt = 1_700_000_000;

const directoryOf = (path: string) => workspaceStateDirectory(home, path);
const databaseOf = (path: string) => join(directoryOf(path), 'state.db');

/** The part of a workspace that a list reads. */
function stopped(number: number): Workspace {
  const path = `/workspaces/w${number}`;
  const record = {
    displayName: `w${number}`,
    state: 'stopped',
    phase: 'stopped',
    exitCode: null,
    health: null,
    problems: [],
  };
  return {
    path,
    facts: { id: `id${number}` },
    snapshot: () => ({ matches: (state: string) => state === 'stopped' }),
    record: () => record,
  } as unknown as Workspace;
}

function makeDatabase(directory: string): void {
  mkdirSync(directory, { recursive: true });
  const store = openStore(directory);
  const base = { workspacePath: '/workspaces/w', status: 'active', createdAt: '2026-01-01T00:00:00.000Z' } as const;
  for (const number of [1, 2, 3]) {
    const lastActiveAt = `2026-01-0${number}T00:00:00.000Z`;
    store.threads.putThread({ ...base, id: `thread_${number}`, displayName: `Talk ${number}`, lastActiveAt });
  }
  store.close();
}

const workspaces = Array.from({ length: count }, (_, number) => stopped(number));
makeDatabase(join(home, 'template'));
for (const { path } of workspaces) {
  mkdirSync(directoryOf(path), { recursive: true });
  copyFileSync(join(home, 'template', 'state.db'), databaseOf(path));
  utimesSync(databaseOf(path), writtenAt, writtenAt);
}

function lists(of: readonly Workspace[], now?: () => number) {
  const registry = { workspaces: new Map(of.map((workspace) => [workspace.path, workspace])) };
  return new ThreadLists({ home, registry: registry as never, logger: silent, ...(now && { now }) });
}

/** Makes the files of a database old ones. */
function age(path: string): void {
  for (const file of [databaseOf(path), `${databaseOf(path)}-wal`])
    if (existsSync(file)) utimesSync(file, writtenAt, writtenAt);
}

/** Writes other bytes of the same length, which only a reader of the content notices. */
function spoil(path: string): () => void {
  const file = databaseOf(path);
  const content = readFileSync(file);
  const put = (bytes: Uint8Array) => {
    writeFileSync(file, bytes);
    utimesSync(file, writtenAt, writtenAt);
  };
  put(Buffer.alloc(statSync(file).size, 'x'));
  return () => put(content);
}

t.test('between two workspaces other work is done, and equal lists share one reading', async (t) => {
  // However long it takes, there is time for all.
  const threads = lists(workspaces, () => 0);
  let turns = 0;
  let isOver = false;
  const tick = () => {
    turns += 1;
    if (!isOver) setImmediate(tick);
  };
  setImmediate(tick);
  const [first, second] = await Promise.all([threads.list(all), threads.list({ ...all })]);
  isOver = true;
  t.equal(first, second);
  t.equal(first.threads.length, 50);
  t.equal(first.hasMore, true);
  t.ok(
    first.threads.every(({ name }) => name === 'Talk 3'),
    'the newest of all',
  );
  t.ok(turns >= count - 1, `${turns} turns of the loop`);
});

t.test('an unchanged database is not read again; a changed one is, and its last list outlives it', async (t) => {
  const few = workspaces.slice(0, 20);
  const threads = lists(few, () => 0);
  const range = { ...all, limit: 1_000 };
  // SQLite puts the files of its log beside a database that it opens.
  await threads.list(range);
  for (const each of few) age(each.path);
  const before = await threads.list(range);
  t.equal(before.threads.length, 3 * few.length);
  const path = few[7]?.path ?? '';
  const mend = spoil(path);
  t.same(await threads.list(range), before, 'nothing is read');
  utimesSync(databaseOf(path), writtenAt + 1, writtenAt + 1);
  const after = await threads.list(range);
  t.equal(after.threads.length, 3 * few.length, 'what was known is still shown');
  t.match(
    after.workspaces.filter(({ problem }) => problem !== null),
    [{ displayName: 'w7', problem: /state\.db/ }],
  );
  t.match(
    (await threads.list({ ...range, text: 'talk' })).workspaces.filter(({ problem }) => problem !== null),
    [{ displayName: 'w7' }],
  );
  mend();
  t.same(await threads.list(range), before);
});

t.test('at the deadline the rest is named as unread, and the next list continues', async (t) => {
  let clock = 0;
  // Each reading of the clock takes a second: the deadline is five.
  const threads = lists(workspaces, () => {
    clock += 1_000;
    return clock;
  });
  const found = await threads.list({ ...all, limit: 1_000 });
  const unread = found.workspaces.filter(({ problem }) => problem !== null);
  t.equal(unread.length + found.threads.length / 3, count);
  t.ok(found.threads.length > 0);
  t.ok(unread.every(({ problem }) => problem === 'There was no time to read it.'));
});
