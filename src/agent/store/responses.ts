import type { ResponseStore, StoredResponse } from '../response-store.ts';
import type { Database } from './database.ts';
import type { Row } from './rows.ts';

/** Responses in the database of a workspace. */
export class SqliteResponses implements ResponseStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  add({ id, threadId, json }: Pick<StoredResponse, 'id' | 'threadId' | 'json'>): void {
    this.#database.run('INSERT INTO responses (id, thread, json) VALUES (?, ?, ?)', id, threadId, json);
  }

  begin(id: string, turnId: string): void {
    this.#database.run('UPDATE responses SET turn = ?2 WHERE id = ?1', id, turnId);
  }

  put(id: string, json: string, isEnded: boolean): void {
    this.#database.run('UPDATE responses SET json = ?2, isEnded = ?3 WHERE id = ?1', id, json, isEnded ? 1 : 0);
  }

  get(id: string): StoredResponse | undefined {
    const row = this.#database.get('SELECT * FROM responses WHERE id = ?', id);
    return row && responseOf(row);
  }

  latest(threadId: string): StoredResponse | undefined {
    const row = this.#database.get('SELECT * FROM responses WHERE thread = ? ORDER BY key DESC LIMIT 1', threadId);
    return row && responseOf(row);
  }

  unfinished(): readonly StoredResponse[] {
    return this.#database.all('SELECT * FROM responses WHERE isEnded = 0 ORDER BY key').map(responseOf);
  }

  delete(id: string): void {
    this.#database.run('DELETE FROM responses WHERE id = ?', id);
  }
}

const responseOf = ({ id, thread, turn, isEnded, json }: Row): StoredResponse => ({
  id: String(id),
  threadId: String(thread),
  turnId: turn === null ? undefined : String(turn),
  isEnded: isEnded === 1,
  json: String(json),
});
