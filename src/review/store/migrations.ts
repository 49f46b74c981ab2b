import { sql } from 'kysely';
import type { Rows } from './database.ts';
import { ReviewStoreError } from './errors.ts';

/** SQL fragments that differ between the databases. */
interface SqlFragments {
  /** Type of a key that grows with every row and is never reused. */
  readonly key: string;
  readonly whole: string;
  /** Suffix after the columns of a table. */
  readonly table: string;
}
const fragmentsOf: Readonly<Record<'sqlite' | 'postgres', SqlFragments>> = {
  sqlite: { key: 'INTEGER PRIMARY KEY AUTOINCREMENT', whole: 'INTEGER', table: ' STRICT' },
  postgres: { key: 'bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY', whole: 'bigint', table: '' },
};

/**
 * Migrations: number n updates the schema from version n to n + 1. Never edit a released one; append another. A change that older
 * replicas cannot handle needs two releases.
 */
export const migrations: readonly ((fragments: SqlFragments) => readonly string[])[] = [
  ({ key, whole, table }) => [
    `CREATE TABLE "repositories" (
      "repositoryKey" text PRIMARY KEY, "instance" text NOT NULL, "owner" text NOT NULL, "name" text NOT NULL,
      "isEnabled" ${whole} NOT NULL, "autoReview" ${whole} NOT NULL, "baselineAt" ${whole}, "installationId" ${whole},
      "defaultBranch" text, "etag" text, "syncedUntil" ${whole}, "lastSyncAt" ${whole}, "lastSyncError" text
    )${table}`,
    `CREATE TABLE "items" (
      "key" ${key}, "itemId" text NOT NULL UNIQUE,
      "repositoryKey" text NOT NULL REFERENCES "repositories" ("repositoryKey"), "number" ${whole} NOT NULL,
      "title" text NOT NULL, "description" text NOT NULL, "author" text NOT NULL, "authorAssociation" text NOT NULL,
      "isBot" ${whole} NOT NULL, "state" text NOT NULL, "isDraft" ${whole} NOT NULL, "isFork" ${whole} NOT NULL,
      "labels" text NOT NULL, "baseRef" text NOT NULL, "baseSha" text NOT NULL, "headRef" text NOT NULL,
      "headSha" text NOT NULL, "url" text NOT NULL, "updatedAt" ${whole} NOT NULL, "dispatchedHeadSha" text,
      "reviewedHeadSha" text, "reviewedBaseSha" text, "automaticReviews" ${whole} NOT NULL, "isPaused" ${whole} NOT NULL,
      "summaryCommentId" ${whole},
      UNIQUE ("repositoryKey", "number")
    )${table}`,
    `CREATE INDEX "itemsByUpdate" ON "items" ("updatedAt", "key")`,
    `CREATE INDEX "itemsDue" ON "items" ("updatedAt", "key")
      WHERE "state" = 'open' AND ("dispatchedHeadSha" IS NULL OR "dispatchedHeadSha" <> "headSha")`,
    `CREATE TABLE "runs" (
      "key" ${key}, "runId" text NOT NULL UNIQUE, "itemId" text NOT NULL REFERENCES "items" ("itemId"),
      "repositoryKey" text NOT NULL, "source" text NOT NULL, "number" ${whole} NOT NULL, "trigger" text NOT NULL,
      "scope" text NOT NULL, "focus" text, "headSha" text NOT NULL, "baseSha" text NOT NULL, "sinceSha" text,
      "state" text NOT NULL, "attempt" ${whole} NOT NULL, "nextAttemptAt" ${whole}, "threadId" text, "turnId" text,
      "draftId" text, "worktreePath" text, "error" text, "isCancelRequested" ${whole} NOT NULL,
      "createdAt" ${whole} NOT NULL, "startedAt" ${whole}, "finishedAt" ${whole},
      "phase" text CHECK ("phase" IN ('waiting', 'active')),
      "leaseOwner" text, "leaseToken" ${whole} NOT NULL, "leaseUntil" ${whole} NOT NULL
    )${table}`,
    `CREATE UNIQUE INDEX "runsOncePerPhase" ON "runs" ("itemId", "phase") WHERE "phase" IS NOT NULL`,
    `CREATE INDEX "runsAtWork" ON "runs" ("leaseUntil") WHERE "phase" = 'active'`,
    `CREATE INDEX "runsByAge" ON "runs" ("createdAt") WHERE "phase" IS NOT NULL`,
    `CREATE INDEX "runsByItem" ON "runs" ("itemId", "key")`,
    `CREATE INDEX "runsByState" ON "runs" ("state", "key")`,
    `CREATE INDEX "runsByEnd" ON "runs" ("finishedAt") WHERE "finishedAt" IS NOT NULL`,
    `CREATE TABLE "drafts" (
      "key" ${key}, "draftId" text NOT NULL UNIQUE, "runId" text NOT NULL UNIQUE REFERENCES "runs" ("runId"),
      "itemId" text NOT NULL, "headSha" text NOT NULL, "status" text NOT NULL, "summary" text NOT NULL,
      "reviewedFiles" ${whole} NOT NULL, "totalFiles" ${whole} NOT NULL, "skippedFiles" text NOT NULL,
      "warnings" text NOT NULL, "blockedBy" text, "publishedAt" ${whole}, "url" text, "version" ${whole} NOT NULL
    )${table}`,
    `CREATE INDEX "draftsByItem" ON "drafts" ("itemId", "key")`,
    `CREATE TABLE "findings" (
      "key" ${key}, "findingId" text NOT NULL UNIQUE,
      "draftId" text NOT NULL REFERENCES "drafts" ("draftId") ON DELETE CASCADE, "itemId" text NOT NULL,
      "severity" text NOT NULL, "kind" text NOT NULL, "title" text NOT NULL, "body" text NOT NULL, "path" text NOT NULL,
      "side" text NOT NULL, "line" ${whole}, "startLine" ${whole}, "oldText" text, "newText" text,
      "placement" text NOT NULL, "fingerprint" text NOT NULL, "status" text NOT NULL, "isResolved" ${whole} NOT NULL,
      "resolution" text, "resolutionNote" text, "isPublished" ${whole} NOT NULL, "warnings" text NOT NULL,
      "commentId" ${whole}, "threadNodeId" text, "url" text
    )${table}`,
    `CREATE INDEX "findingsByDraft" ON "findings" ("draftId", "key")`,
    `CREATE INDEX "findingsOpen" ON "findings" ("itemId", "key") WHERE "isPublished" = 1 AND "isResolved" = 0`,
    `CREATE TABLE "deliveries" (
      "key" ${key}, "deliveryId" text NOT NULL UNIQUE, "event" text NOT NULL, "action" text, "repositoryKey" text,
      "number" ${whole}, "sender" text, "outcome" text NOT NULL, "reason" text, "receivedAt" ${whole} NOT NULL,
      "tookMs" ${whole} NOT NULL, "redeliveries" ${whole} NOT NULL
    )${table}`,
    `CREATE INDEX "deliveriesByOutcome" ON "deliveries" ("outcome", "key")`,
    `CREATE INDEX "deliveriesQueued" ON "deliveries" ("repositoryKey", "number")
      WHERE "event" = 'pull_request' AND "outcome" = 'queued'`,
    `CREATE TABLE "commands" (
      "commentId" ${whole} PRIMARY KEY, "repositoryKey" text NOT NULL, "number" ${whole} NOT NULL, "actor" text NOT NULL,
      "verb" text NOT NULL, "focus" text, "status" text NOT NULL, "errorCode" text, "runId" text,
      "createdAt" ${whole} NOT NULL
    )${table}`,
    // `dedupe` first: with an index that begins with the kind, SQLite would read the whole queue to find the next few jobs.
    `CREATE TABLE "jobs" (
      "jobId" ${key}, "kind" text NOT NULL, "key" text NOT NULL, "payload" text NOT NULL, "dedupe" text,
      "dueAt" ${whole} NOT NULL, "attempt" ${whole} NOT NULL, "again" ${whole} NOT NULL, "lastError" text,
      "createdAt" ${whole} NOT NULL, "leaseOwner" text, "leaseToken" ${whole} NOT NULL,
      UNIQUE ("dedupe", "kind")
    )${table}`,
    `CREATE INDEX "jobsDue" ON "jobs" ("dueAt", "jobId")`,
    `CREATE INDEX "jobsByKey" ON "jobs" ("key", "jobId")`,
    `CREATE TABLE "deadJobs" (
      "jobId" ${whole} PRIMARY KEY, "kind" text NOT NULL, "key" text NOT NULL, "payload" text NOT NULL,
      "attempt" ${whole} NOT NULL, "error" text NOT NULL, "diedAt" ${whole} NOT NULL
    )${table}`,
    `CREATE TABLE "writes" (
      "key" ${key}, "writeId" text NOT NULL UNIQUE, "kind" text NOT NULL, "dedupeKey" text NOT NULL UNIQUE,
      "repositoryKey" text NOT NULL, "runId" text, "request" text NOT NULL, "status" text NOT NULL,
      "attempts" ${whole} NOT NULL, "response" text, "lastError" text, "createdAt" ${whole} NOT NULL, "sentAt" ${whole}
    )${table}`,
    `CREATE INDEX "writesByRun" ON "writes" ("runId", "key")`,
    `CREATE INDEX "writesByStatus" ON "writes" ("status", "key")`,
    `CREATE TABLE "syncJobs" (
      "key" ${key}, "jobId" text NOT NULL UNIQUE, "repositoryKey" text, "trigger" text NOT NULL, "status" text NOT NULL,
      "repositories" ${whole} NOT NULL, "changedItems" ${whole} NOT NULL, "apiCalls" ${whole} NOT NULL,
      "notModified" ${whole} NOT NULL, "error" text, "createdAt" ${whole} NOT NULL, "finishedAt" ${whole}
    )${table}`,
    `CREATE TABLE "roles" ("role" text PRIMARY KEY, "owner" text NOT NULL, "until" ${whole} NOT NULL)${table}`,
    `CREATE TABLE "facts" ("name" text PRIMARY KEY, "value" text NOT NULL)${table}`,
    `CREATE TABLE "events" (
      "seq" ${key}, "at" ${whole} NOT NULL, "kind" text NOT NULL, "data" text NOT NULL
    )${table}`,
    `CREATE INDEX "eventsByTime" ON "events" ("at")`,
  ],
  () => [`ALTER TABLE "items" ADD COLUMN "deliveryId" text`, `ALTER TABLE "runs" ADD COLUMN "deliveryId" text`],
  () => [
    `ALTER TABLE "drafts" ADD COLUMN "dropped" text`,
    `ALTER TABLE "deliveries" ADD COLUMN "digest" text`,
    `CREATE INDEX "deliveriesByDigest" ON "deliveries" ("digest") WHERE "digest" IS NOT NULL`,
  ],
];

/**
 * Updates the schema in the given transaction, which must exclude other migrations.
 * @param where - name of the database for errors
 * @throws ReviewStoreError databaseNewer, when a newer version created the schema; the schema is not changed
 */
export async function migrate(
  rows: Rows,
  kind: 'sqlite' | 'postgres',
  where: string,
  steps = migrations,
): Promise<void> {
  const { whole, table } = fragmentsOf[kind];
  const run = (statement: string) => sql.raw(statement).execute(rows);
  await run(
    `CREATE TABLE IF NOT EXISTS "schemaVersion" ("one" ${whole} PRIMARY KEY CHECK ("one" = 1), "version" ${whole} NOT NULL)${table}`,
  );
  const found = await rows.selectFrom('schemaVersion').select('version').executeTakeFirst();
  const version = Number(found?.version ?? 0);
  if (version > steps.length) throw isNewer(where, version, steps.length);
  if (version === steps.length) return;
  for (const step of steps.slice(version)) for (const statement of step(fragmentsOf[kind])) await run(statement);
  await rows
    .insertInto('schemaVersion')
    .values({ one: 1, version: steps.length })
    .onConflict((conflict) => conflict.column('one').doUpdateSet({ version: steps.length }))
    .execute();
}

const isNewer = (where: string, version: number, known: number): ReviewStoreError =>
  new ReviewStoreError(
    'databaseNewer',
    `${where} was created by a newer version of Oratorio (schema ${version}; this version supports up to ${known}): use that version`,
  );
