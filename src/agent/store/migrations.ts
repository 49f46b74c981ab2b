import type { DatabaseSync } from 'node:sqlite';
import { StorageError } from '../thread-store.ts';
import made from './schema.generated.json' with { type: 'json' };
import { checkSchema, objectText, type Schema, schemaAfter } from './schema-check.ts';
import { isSearchable, textOf } from './texts.ts';

/** Objects that SQLite creates itself: its own, and the tables of a full-text index. */
const isMadeWithAnother = (name: string): boolean => /^(?:sqlite|texts)_/.test(name);

/**
 * Migrations of the database: number n takes it from `user_version` n to n + 1. A released migration is never
 * edited, only followed by another; then `npm run docs` renews `schema.generated.json`.
 *
 * Keys are SQLite's row ids: they grow in the order of insertion, which is the order of a conversation. `json` is the
 * document in the form of the protocol; the columns beside it are for searches. `number` is the one in `turn_001`.
 */
export const migrations: readonly string[] = [
  `
  CREATE TABLE threads (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    lastActiveAt TEXT NOT NULL,
    nextTurn INTEGER NOT NULL DEFAULT 1,
    nextItem INTEGER NOT NULL DEFAULT 1,
    json TEXT NOT NULL
  ) STRICT;
  CREATE INDEX threadsByActivity ON threads (lastActiveAt, key);

  CREATE TABLE turns (
    key INTEGER PRIMARY KEY,
    thread INTEGER NOT NULL REFERENCES threads (key) ON DELETE CASCADE,
    id TEXT NOT NULL,
    number INTEGER NOT NULL,
    status TEXT NOT NULL,
    json TEXT NOT NULL,
    UNIQUE (thread, key),
    UNIQUE (thread, id)
  ) STRICT;
  CREATE INDEX turnsUnfinished ON turns (thread, key) WHERE status IN ('running', 'waitingApproval');
  CREATE TRIGGER turnNumbered AFTER INSERT ON turns BEGIN
    UPDATE threads SET nextTurn = new.number + 1 WHERE key = new.thread AND nextTurn <= new.number;
  END;

  CREATE TABLE items (
    key INTEGER PRIMARY KEY,
    thread INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    id TEXT NOT NULL,
    number INTEGER NOT NULL,
    canGrow INTEGER NOT NULL,
    json TEXT NOT NULL,
    UNIQUE (thread, id),
    FOREIGN KEY (thread, turn) REFERENCES turns (thread, key) ON DELETE CASCADE
  ) STRICT;
  CREATE INDEX itemsByTurn ON items (thread, turn, key);
  CREATE TRIGGER itemNumbered AFTER INSERT ON items BEGIN
    UPDATE threads SET nextItem = new.number + 1 WHERE key = new.thread AND nextItem <= new.number;
  END;

  -- Pieces added to the text of an item since it was put: a long text is not written again for every word.
  -- One tree and no index beside it: the commit of a piece writes one page.
  CREATE TABLE pieces (
    item INTEGER NOT NULL REFERENCES items (key) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    json TEXT NOT NULL,
    PRIMARY KEY (item, number)
  ) STRICT, WITHOUT ROWID;
  CREATE TRIGGER itemReplaced AFTER UPDATE ON items BEGIN
    DELETE FROM pieces WHERE item = new.key;
  END;

  CREATE TABLE queued (
    key INTEGER PRIMARY KEY,
    thread INTEGER NOT NULL REFERENCES threads (key) ON DELETE CASCADE,
    id TEXT NOT NULL,
    json TEXT NOT NULL,
    UNIQUE (thread, id)
  ) STRICT;

  -- thread is null where the whole workspace was granted it.
  CREATE TABLE grants (
    thread INTEGER REFERENCES threads (key) ON DELETE CASCADE,
    scope TEXT NOT NULL
  ) STRICT;
  CREATE UNIQUE INDEX grantsOnce ON grants (scope, ifnull(thread, 0));
  CREATE INDEX grantsByThread ON grants (thread);

  -- Goes with the turn it reaches to: a summary of removed turns must not reach a model.
  CREATE TABLE compactions (
    key INTEGER PRIMARY KEY,
    thread INTEGER NOT NULL,
    throughTurn INTEGER NOT NULL,
    json TEXT NOT NULL,
    FOREIGN KEY (thread, throughTurn) REFERENCES turns (thread, key) ON DELETE CASCADE
  ) STRICT;
  CREATE INDEX compactionsByThread ON compactions (thread, throughTurn);

  CREATE TABLE traceSessions (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    sessionKey TEXT NOT NULL UNIQUE,
    startedAt TEXT NOT NULL,
    lastActivityAt TEXT NOT NULL,
    displayName TEXT,
    channelName TEXT,
    turnCount INTEGER NOT NULL,
    thinkingCount INTEGER NOT NULL,
    responseCount INTEGER NOT NULL,
    toolCallCount INTEGER NOT NULL,
    toolFailureCount INTEGER NOT NULL,
    approvalCount INTEGER NOT NULL,
    errorCount INTEGER NOT NULL,
    inputTokens INTEGER NOT NULL,
    outputTokens INTEGER NOT NULL,
    eventCount INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX traceSessionsByActivity ON traceSessions (lastActivityAt, key);

  -- AUTOINCREMENT: a reader's cursor must not meet an id again after traces were deleted. No foreign key: checking it
  -- for every event doubles the cost of an event.
  CREATE TABLE traceEvents (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL,
    type TEXT NOT NULL,
    json TEXT NOT NULL
  ) STRICT;
  CREATE INDEX traceEventsBySession ON traceEvents (session, id, type);

  -- Keys of deleted sessions whose events are still to be taken away.
  CREATE TABLE traceRemains (session INTEGER PRIMARY KEY) STRICT;
  `,
  `
  ALTER TABLE traceSessions ADD COLUMN firstInput TEXT;
  ALTER TABLE traceSessions ADD COLUMN parentSessionKey TEXT;
  ALTER TABLE traceSessions ADD COLUMN model TEXT;
  ALTER TABLE traceSessions ADD COLUMN lastStatus TEXT;
  ALTER TABLE traceSessions ADD COLUMN failedTurnCount INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE traceSessions ADD COLUMN compactionCount INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE traceSessions ADD COLUMN turnDurationMs INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE traceSessions ADD COLUMN toolDurationMs INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE traceSessions ADD COLUMN maxToolDurationMs INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE traceSessions ADD COLUMN approvalWaitMs INTEGER NOT NULL DEFAULT 0;
  CREATE INDEX traceSessionsRunning ON traceSessions (lastActivityAt, key) WHERE lastStatus = 'running';
  -- A turn that is recorded as running in a closed database has crashed: the next start records that in the traces too.
  UPDATE traceSessions SET lastStatus = 'running' WHERE sessionKey IN (
    SELECT threads.id FROM turns JOIN threads ON threads.key = turns.thread
    WHERE turns.status IN ('running', 'waitingApproval')
  );

  -- One row: the sums of all sessions, updated with every write.
  CREATE TABLE traceTotals (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    sessionCount INTEGER NOT NULL,
    turnCount INTEGER NOT NULL,
    failedTurnCount INTEGER NOT NULL,
    thinkingCount INTEGER NOT NULL,
    responseCount INTEGER NOT NULL,
    toolCallCount INTEGER NOT NULL,
    toolFailureCount INTEGER NOT NULL,
    approvalCount INTEGER NOT NULL,
    compactionCount INTEGER NOT NULL,
    errorCount INTEGER NOT NULL,
    inputTokens INTEGER NOT NULL,
    outputTokens INTEGER NOT NULL,
    turnDurationMs INTEGER NOT NULL,
    toolDurationMs INTEGER NOT NULL,
    maxToolDurationMs INTEGER NOT NULL,
    approvalWaitMs INTEGER NOT NULL,
    eventCount INTEGER NOT NULL
  ) STRICT;
  INSERT INTO traceTotals SELECT 1, count(*), ifnull(sum(turnCount), 0), 0, ifnull(sum(thinkingCount), 0),
    ifnull(sum(responseCount), 0), ifnull(sum(toolCallCount), 0), ifnull(sum(toolFailureCount), 0),
    ifnull(sum(approvalCount), 0), 0, ifnull(sum(errorCount), 0), ifnull(sum(inputTokens), 0),
    ifnull(sum(outputTokens), 0), 0, 0, 0, 0, ifnull(sum(eventCount), 0) FROM traceSessions;

  -- Jobs and tasks. Times are milliseconds since the epoch. The JSON holds the decisions of a user.
  CREATE TABLE automations (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    enabled INTEGER NOT NULL,
    nextAt INTEGER,
    version INTEGER NOT NULL,
    createdAt INTEGER NOT NULL,
    updatedAt INTEGER NOT NULL,
    -- Facts that the scheduler keeps: last due time, failures in a row, a retry that waits.
    progress TEXT NOT NULL,
    json TEXT NOT NULL
  ) STRICT;
  CREATE INDEX automationsByNext ON automations (nextAt) WHERE enabled = 1 AND nextAt IS NOT NULL;

  -- One row for one due time, however often it is tried: a run is begun by inserting it, so none can be begun twice.
  CREATE TABLE automationRuns (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    automation INTEGER NOT NULL REFERENCES automations (key) ON DELETE CASCADE,
    scheduledFor INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    status TEXT NOT NULL,
    json TEXT NOT NULL,
    UNIQUE (automation, scheduledFor)
  ) STRICT;
  CREATE INDEX automationRunsUnfinished ON automationRuns (automation) WHERE status = 'running';
  `,
  `
  -- Opaque parts of answers, which go back to the model that wrote them; kept apart from the items, which clients are shown.
  CREATE TABLE answerStates (
    item INTEGER PRIMARY KEY REFERENCES items (key) ON DELETE CASCADE,
    json TEXT NOT NULL
  ) STRICT;
  `,
  ['traceSessions', 'traceTotals']
    .map(
      (table) => `
  ALTER TABLE ${table} ADD COLUMN cachedInputTokens INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE ${table} ADD COLUMN reasoningTokens INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE ${table} ADD COLUMN costUsd REAL NOT NULL DEFAULT 0;
  ALTER TABLE ${table} ADD COLUMN unpricedCount INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE ${table} ADD COLUMN modelFailureCount INTEGER NOT NULL DEFAULT 0;
  `,
    )
    .join(''),
  `
  -- Facts that a thread starts with, for the beginning of its requests.
  CREATE TABLE briefings (
    thread INTEGER PRIMARY KEY REFERENCES threads (key) ON DELETE CASCADE,
    json TEXT NOT NULL
  ) STRICT;
  `,
  `
  -- Conversations of threads at an external agent.
  CREATE TABLE agentSessions (
    thread INTEGER PRIMARY KEY REFERENCES threads (key) ON DELETE CASCADE,
    json TEXT NOT NULL
  ) STRICT;
  `,
  `
  -- Requests of the chat API that their clients may repeat. Columns of a fixed size precede the answer: a scan reads no answer.
  CREATE TABLE chatRequests (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    fingerprint TEXT NOT NULL,
    thread TEXT NOT NULL,
    turn TEXT NOT NULL,
    -- Milliseconds since the epoch; null while the turn runs.
    endedAt INTEGER,
    chars INTEGER NOT NULL DEFAULT 0,
    -- Null while the turn runs, and when its end is unknown.
    answer TEXT
  ) STRICT;
  CREATE INDEX chatRequestsEnded ON chatRequests (endedAt, key, chars) WHERE endedAt IS NOT NULL;
  CREATE TRIGGER chatRequestsOfThread AFTER DELETE ON threads BEGIN
    DELETE FROM chatRequests WHERE thread = old.id;
  END;
  `,
  `
  -- Facts from which the next agent server continues with an unfinished turn. Deleted in the commit of the turn's end.
  CREATE TABLE turnActors (
    turn INTEGER PRIMARY KEY REFERENCES turns (key) ON DELETE CASCADE,
    json TEXT NOT NULL
  ) STRICT;

  -- Calls with effects that have started: they are not run again.
  CREATE TABLE turnCalls (
    turn INTEGER NOT NULL REFERENCES turns (key) ON DELETE CASCADE,
    callId TEXT NOT NULL,
    json TEXT NOT NULL,
    PRIMARY KEY (turn, callId)
  ) STRICT, WITHOUT ROWID;
  `,
  `
  -- Long options of the caller, such as the conversation of a chat request: written once, unlike the other facts.
  ALTER TABLE turnActors ADD COLUMN request TEXT;

  -- The thread of a request without a session is deleted when its turn has ended; its answer stays.
  DROP TRIGGER chatRequestsOfThread;
  CREATE TRIGGER chatRequestsOfThread AFTER DELETE ON threads WHEN json_extract(old.json, '$.isTransient') IS NULL BEGIN
    DELETE FROM chatRequests WHERE thread = old.id;
  END;
  `,
  `
  -- Responses of the responses API. A client may ask for one as long as its thread is stored.
  CREATE TABLE responses (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    thread TEXT NOT NULL,
    -- Null until the turn begins.
    turn TEXT,
    isEnded INTEGER NOT NULL DEFAULT 0,
    json TEXT NOT NULL
  ) STRICT;
  CREATE INDEX responsesOfThread ON responses (thread, key);
  CREATE INDEX responsesUnfinished ON responses (key) WHERE isEnded = 0;
  CREATE TRIGGER responsesOfThread AFTER DELETE ON threads BEGIN
    DELETE FROM responses WHERE thread = old.id;
  END;
  `,
  `
  -- Words of messages and answers, for the search over all conversations; the texts themselves stay in items.
  CREATE VIRTUAL TABLE texts USING fts5 (text, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2');
  CREATE TRIGGER textAdded AFTER INSERT ON items WHEN ${isSearchable('new.json')} BEGIN
    INSERT INTO texts (rowid, text) VALUES (new.key, ${textOf('new.json')});
  END;
  CREATE TRIGGER textReplaced AFTER UPDATE ON items WHEN ${isSearchable('new.json')} BEGIN
    INSERT OR REPLACE INTO texts (rowid, text) VALUES (new.key, ${textOf('new.json')});
  END;
  CREATE TRIGGER textRemoved AFTER DELETE ON items BEGIN
    DELETE FROM texts WHERE rowid = old.key;
  END;
  -- The newest items of an earlier version: more would hold up the start.
  INSERT INTO texts (rowid, text) SELECT key, ${textOf('items.json')} FROM items
    WHERE key > (SELECT ifnull(max(key), 0) FROM items) - 50000 AND ${isSearchable('json')};
  `,
  `
  -- Turns whose texts the index lacks. It gets those of many turns at once: for each commit it writes five pages.
  DROP TRIGGER textAdded;
  DROP TRIGGER textReplaced;
  CREATE TABLE textsDue (turn INTEGER PRIMARY KEY REFERENCES turns (key) ON DELETE CASCADE) STRICT;
  CREATE TRIGGER textsOfTurn AFTER INSERT ON turns BEGIN
    INSERT INTO textsDue VALUES (new.key);
  END;
  INSERT INTO textsDue SELECT key FROM turns WHERE status IN ('running', 'waitingApproval');
  `,
  `
  ALTER TABLE traceSessions ADD COLUMN pauseMs INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE traceTotals ADD COLUMN pauseMs INTEGER NOT NULL DEFAULT 0;
  `,
];

/**
 * Brings an opened database up to date, in one transaction.
 * @throws StorageError failed, for a database that a newer version made; corrupt, for one that is not ours. It is not touched
 */
export function migrate(sqlite: DatabaseSync, file: string, steps: readonly string[] = migrations): void {
  const version = versionOf(sqlite);
  if (version > steps.length) throw isNewer(file, version, steps.length);
  checkSchema(sqlite, file, schemaAt(version, steps));
  if (version === steps.length) return;
  const script = version === 0 && steps === migrations ? newestScript() : steps.slice(version);
  sqlite.exec(`BEGIN IMMEDIATE; ${script.join(';\n')}; PRAGMA user_version = ${steps.length}; COMMIT`);
}

/**
 * Statements that make a database of an empty one, from `schema.generated.json`: SQLite parses the whole schema again for each
 * `ALTER TABLE`, so the migrations take six times as long.
 */
function newestScript(): readonly string[] {
  const objects = made.objects.filter(([, name = '']) => !isMadeWithAnother(name));
  return [...objects.map(([, , , sql = '']) => sql), ...made.inserts];
}

let newest: Schema | undefined;

/** Schema of a database that has had `version` migrations. */
function schemaAt(version: number, steps: readonly string[] = migrations): Schema {
  if (steps !== migrations || version < steps.length) return schemaAfter(steps.slice(0, version));
  newest ??= new Map(made.objects.map(([type, name = '', of, sql]) => [name, objectText(type, of, sql)]));
  return newest;
}

/**
 * Checks whether a database can be read without a migration.
 * @throws StorageError failed, for one that a newer or an older version made; corrupt, for one that is not ours
 */
export function checkVersion(sqlite: DatabaseSync, file: string): void {
  const version = versionOf(sqlite);
  if (version > migrations.length) throw isNewer(file, version, migrations.length);
  if (version < migrations.length) {
    throw new StorageError(
      'failed',
      `${file} was made by an older version of Oratorio (its schema is ${version}, here it is ${migrations.length}): start the agent server of this workspace once, which brings it up to date`,
    );
  }
  checkSchema(sqlite, file, schemaAt(version));
}

/**
 * Compares a database of any version up to ours with the schema of its migrations.
 * @throws StorageError failed, for one that a newer version made; corrupt, for one that is not ours
 */
export function checkSchemaOf(sqlite: DatabaseSync, file: string): void {
  const version = versionOf(sqlite);
  if (version > migrations.length) throw isNewer(file, version, migrations.length);
  checkSchema(sqlite, file, schemaAt(version));
}

const isNewer = (file: string, version: number, known: number): StorageError =>
  new StorageError(
    'failed',
    `${file} was made by a newer version of Oratorio (its schema is ${version}, the newest known here is ${known}): use that version, or move the file aside`,
  );

export function versionOf(sqlite: DatabaseSync): number {
  return Number(sqlite.prepare('PRAGMA user_version').get()?.['user_version']);
}
