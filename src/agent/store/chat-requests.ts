import type { ChatRequestLimits, ChatRequestStore, StoredChatRequest } from '../chat-request-store.ts';
import type { Database } from './database.ts';
import { parseColumn } from './rows.ts';

/** Chat requests in the database of a workspace. The column `answer` has the origin until the turn has ended. */
export class SqliteChatRequests implements ChatRequestStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  begin({ name, fingerprint, threadId, turnId, origin }: StoredChatRequest): void {
    this.#database.run(
      'INSERT OR REPLACE INTO chatRequests (name, fingerprint, thread, turn, answer) VALUES (?, ?, ?, ?, ?)',
      name,
      fingerprint,
      threadId,
      turnId,
      origin ?? null,
    );
  }

  end(name: string, answer: string | undefined, at: number): void {
    this.#database.run(
      'UPDATE chatRequests SET endedAt = ?2, chars = ?3, answer = ?4 WHERE name = ?1',
      name,
      at,
      answer?.length ?? 0,
      answer ?? null,
    );
  }

  unfinished(): readonly StoredChatRequest[] {
    const rows = this.#database.all(
      'SELECT name, fingerprint, thread, turn, answer FROM chatRequests WHERE endedAt IS NULL ORDER BY key',
    );
    return rows.map(({ name, fingerprint, thread, turn, answer }) => ({
      name: String(name),
      fingerprint: String(fingerprint),
      threadId: String(thread),
      turnId: String(turn),
      origin: answer === null ? undefined : String(answer),
    }));
  }

  find(name: string): { readonly fingerprint: string; readonly answer: unknown } | undefined {
    const row = this.#database.get('SELECT fingerprint, endedAt, answer FROM chatRequests WHERE name = ?', name);
    if (!row) return undefined;
    const { fingerprint, endedAt, answer } = row;
    const { file } = this.#database;
    return {
      fingerprint: String(fingerprint),
      answer: endedAt === null || answer === null ? undefined : parseColumn(answer, file),
    };
  }

  delete(name: string): void {
    this.#database.run('DELETE FROM chatRequests WHERE name = ?', name);
  }

  trim({ endedAfter, entries, chars }: ChatRequestLimits): void {
    this.#database.run(
      `DELETE FROM chatRequests WHERE key IN (
         SELECT key FROM (
           SELECT key, endedAt, row_number() OVER newest AS place, sum(chars) OVER newest AS total
           FROM chatRequests WHERE endedAt IS NOT NULL WINDOW newest AS (ORDER BY endedAt DESC, key DESC)
         ) WHERE endedAt <= ?1 OR place > ?2 OR total > ?3
       )`,
      endedAfter,
      entries,
      chars,
    );
  }
}
