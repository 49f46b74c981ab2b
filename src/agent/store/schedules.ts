import type { RunRange, ScheduleReader, ScheduleStore, StoredAutomation, StoredRun } from '../schedule-store.ts';
import type { Database } from './database.ts';
import { parseColumn, type Row, type Rows } from './rows.ts';

const columns = 'id, kind, enabled, nextAt, version, createdAt, updatedAt, progress, json';
const automationKey = '(SELECT key FROM automations WHERE id = ?1)';
const runColumns =
  'r.key AS key, a.id AS automationId, r.scheduledFor AS scheduledFor, r.attempt AS attempt, r.status AS status, r.json AS json';
const runs = `SELECT ${runColumns} FROM automationRuns r JOIN automations a ON a.key = r.automation`;

/** Settings by the user: the JSON of a row. All other fields are columns. */
type Decided = Omit<
  StoredAutomation,
  'id' | 'kind' | 'enabled' | 'nextAt' | 'version' | 'createdAt' | 'updatedAt' | 'progress'
>;
type RunFacts = Omit<StoredRun, 'runId' | 'automationId' | 'scheduledFor' | 'attempt' | 'status'>;

/** Reads jobs, tasks and their history in an open database. */
export class ScheduleQueries implements ScheduleReader {
  readonly #rows: Rows;

  constructor(rows: Rows) {
    this.#rows = rows;
  }

  count(): number {
    return Number(this.#rows.get('SELECT count(*) AS count FROM automations')?.['count']);
  }

  ids(kind?: StoredAutomation['kind']): readonly string[] {
    const rows =
      kind === undefined
        ? this.#rows.all('SELECT id FROM automations ORDER BY key')
        : this.#rows.all('SELECT id FROM automations WHERE kind = ? ORDER BY key', kind);
    return rows.map(({ id }) => String(id));
  }

  automation(id: string): StoredAutomation | undefined {
    return this.select('WHERE id = ?', id)[0];
  }

  runs(automationId: string, { limit, before }: RunRange): readonly StoredRun[] {
    const end = before === undefined ? Number.MAX_SAFE_INTEGER : this.#dueOf(automationId, before);
    if (end === undefined) return [];
    return this.#rows
      .all(
        `${runs} WHERE r.automation = ${automationKey} AND r.scheduledFor < ?2 ORDER BY r.scheduledFor DESC LIMIT ?3`,
        automationId,
        end,
        Math.max(0, limit),
      )
      .map((row) => this.runOf(row));
  }

  run(automationId: string, scheduledFor: number): StoredRun | undefined {
    const row = this.#rows.get(
      `${runs} WHERE r.automation = ${automationKey} AND r.scheduledFor = ?2`,
      automationId,
      scheduledFor,
    );
    return row && this.runOf(row);
  }

  protected select(rest: string, ...values: (string | number)[]): StoredAutomation[] {
    return this.#rows.all(`SELECT ${columns} FROM automations ${rest}`, ...values).map((row) => this.#of(row));
  }

  #of({ id, kind, enabled, nextAt, version, createdAt, updatedAt, progress, json }: Row): StoredAutomation {
    const { file } = this.#rows;
    return {
      id: String(id),
      kind: kind === 'cron' ? 'cron' : 'task',
      enabled: enabled === 1,
      nextAt: nextAt === null ? null : Number(nextAt),
      version: Number(version),
      createdAt: Number(createdAt),
      updatedAt: Number(updatedAt),
      progress: parseColumn<StoredAutomation['progress']>(progress, file),
      ...parseColumn<Decided>(json, file),
    };
  }

  protected runOf({ key, automationId, scheduledFor, attempt, status, json }: Row): StoredRun {
    return {
      runId: runIdOf(Number(key)),
      automationId: String(automationId),
      scheduledFor: Number(scheduledFor),
      attempt: Number(attempt),
      status: status as StoredRun['status'],
      ...parseColumn<RunFacts>(json, this.#rows.file),
    };
  }

  #dueOf(automationId: string, runId: string): number | undefined {
    const row = this.#rows.get(
      `SELECT scheduledFor FROM automationRuns WHERE automation = ${automationKey} AND key = ?2`,
      automationId,
      Number(runId.slice(runIdOf('').length)),
    );
    return row && Number(row['scheduledFor']);
  }
}

/** Jobs, tasks and their history in the database of a workspace. */
export class SqliteSchedules extends ScheduleQueries implements ScheduleStore {
  readonly #database: Database;

  constructor(database: Database) {
    super(database);
    this.#database = database;
  }

  transaction<T>(work: () => T): T {
    return this.#database.transaction(work);
  }

  put(automation: StoredAutomation): void {
    const { id, kind, enabled, nextAt, version, createdAt, updatedAt, progress, ...decided } = automation;
    this.#database.run(
      `INSERT INTO automations (${columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET enabled = excluded.enabled, nextAt = excluded.nextAt, version = excluded.version,
         updatedAt = excluded.updatedAt, progress = excluded.progress, json = excluded.json`,
      id,
      kind,
      enabled ? 1 : 0,
      nextAt,
      version,
      createdAt,
      updatedAt,
      JSON.stringify(progress),
      JSON.stringify(decided satisfies Decided),
    );
  }

  delete(id: string): boolean {
    return this.#database.run('DELETE FROM automations WHERE id = ?', id).changes > 0;
  }

  dues(): readonly { readonly id: string; readonly nextAt: number }[] {
    return this.#database
      .all('SELECT id, nextAt FROM automations WHERE enabled = 1 AND nextAt IS NOT NULL ORDER BY nextAt')
      .map((row) => ({ id: String(row['id']), nextAt: Number(row['nextAt']) }));
  }

  retrying(): readonly StoredAutomation[] {
    return this.select("WHERE json_extract(progress, '$.retry') IS NOT NULL ORDER BY key");
  }

  handledAfter(time: number): readonly StoredAutomation[] {
    return this.select("WHERE json_extract(progress, '$.lastDueAt') > ? ORDER BY key", time);
  }

  insertRun(run: Omit<StoredRun, 'runId'>): StoredRun | undefined {
    const { automationId, scheduledFor, attempt, status, ...facts } = run;
    const { changes, lastKey } = this.#database.run(
      `INSERT INTO automationRuns (automation, scheduledFor, attempt, status, json)
         SELECT key, ?2, ?3, ?4, ?5 FROM automations WHERE id = ?1
       ON CONFLICT (automation, scheduledFor) DO NOTHING`,
      automationId,
      scheduledFor,
      attempt,
      status,
      JSON.stringify(facts satisfies RunFacts),
    );
    return changes > 0 ? { ...run, runId: runIdOf(lastKey) } : undefined;
  }

  updateRun({ runId: _, automationId, scheduledFor, attempt, status, ...facts }: StoredRun): void {
    this.#database.run(
      `UPDATE automationRuns SET attempt = ?3, status = ?4, json = ?5
       WHERE automation = ${automationKey} AND scheduledFor = ?2`,
      automationId,
      scheduledFor,
      attempt,
      status,
      JSON.stringify(facts satisfies RunFacts),
    );
  }

  unfinishedRuns(): readonly StoredRun[] {
    return this.#database.all(`${runs} WHERE r.status = 'running' ORDER BY r.key`).map((row) => this.runOf(row));
  }

  trimRuns(automationId: string, keep: number): void {
    this.#database.run(
      `DELETE FROM automationRuns WHERE automation = ${automationKey} AND status <> 'running' AND scheduledFor <=
         (SELECT scheduledFor FROM automationRuns WHERE automation = ${automationKey}
          ORDER BY scheduledFor DESC LIMIT 1 OFFSET ?2)`,
      automationId,
      Math.max(0, keep),
    );
  }
}

/** Keys are never used twice, so neither are these. */
const runIdOf = (key: number | ''): string => `run_${key}`;
