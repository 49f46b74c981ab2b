import type { ChatRequestLimits, ChatRequestStore, StoredChatRequest } from '../chat-request-store.ts';
import type { Database } from './database.ts';
import { parseColumn } from './rows.ts';

/** Chat requests in the database of a workspace. */
export class SqliteChatRequests implements ChatRequestStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  begin({ name, fingerprint, threadId, turnId }: StoredChatRequest): void {
    this.#database.run(
      'INSERT OR REPLACE INTO chatRequests (name, fingerprint, thread, turn) VALUES (?, ?, ?, ?)',
      name,
      fingerprint,
      threadId,
      turnId,
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

  endUnfinished(at: number): void {
    this.#database.run('UPDATE chatRequests SET endedAt = ? WHERE endedAt IS NULL', at);
  }

  find(name: string): { readonly fingerprint: string; readonly answer: unknown } | undefined {
    const row = this.#database.get('SELECT fingerprint, answer FROM chatRequests WHERE name = ?', name);
    if (!row) return undefined;
    const { fingerprint, answer } = row;
    const { file } = this.#database;
    return {
      fingerprint: String(fingerprint),
      answer: answer === null ? undefined : parseColumn(answer, file),
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
