import type { StartedCall, TurnActorStore } from '../turn-actor-store.ts';
import type { Database } from './database.ts';
import { parseColumn } from './rows.ts';

const turnKey = '(SELECT key FROM turns WHERE thread = (SELECT key FROM threads WHERE id = ?1) AND id = ?2)';

/** Facts of unfinished turns in the database of a workspace. */
export class SqliteTurnActors implements TurnActorStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  get(threadId: string, turnId: string): string | undefined {
    const row = this.#database.get(`SELECT json FROM turnActors WHERE turn = ${turnKey}`, threadId, turnId);
    return row && String(row['json']);
  }

  put(threadId: string, turnId: string, json: string, request?: string): void {
    this.#database.run(
      `INSERT INTO turnActors (turn, json, request) SELECT key, ?3, ?4 FROM turns WHERE key = ${turnKey}
       ON CONFLICT (turn) DO UPDATE SET json = excluded.json, request = ifnull(excluded.request, request)`,
      threadId,
      turnId,
      json,
      request ?? null,
    );
  }

  request(threadId: string, turnId: string): string | undefined {
    const row = this.#database.get(`SELECT request FROM turnActors WHERE turn = ${turnKey}`, threadId, turnId);
    return typeof row?.['request'] === 'string' ? row['request'] : undefined;
  }

  delete(threadId: string, turnId: string): void {
    this.#database.run(`DELETE FROM turnActors WHERE turn = ${turnKey}`, threadId, turnId);
    this.#database.run(`DELETE FROM turnCalls WHERE turn = ${turnKey}`, threadId, turnId);
  }

  calls(threadId: string, turnId: string): ReadonlyMap<string, StartedCall> {
    const rows = this.#database.all(
      `SELECT callId, json FROM turnCalls WHERE turn = ${turnKey} ORDER BY callId`,
      threadId,
      turnId,
    );
    const { file } = this.#database;
    return new Map(rows.map(({ callId, json }) => [String(callId), parseColumn<StartedCall>(json, file)]));
  }

  putCall(threadId: string, turnId: string, callId: string, call: StartedCall): void {
    this.#database.run(
      `INSERT INTO turnCalls (turn, callId, json) SELECT key, ?3, ?4 FROM turns WHERE key = ${turnKey}
       ON CONFLICT (turn, callId) DO UPDATE SET json = excluded.json`,
      threadId,
      turnId,
      callId,
      JSON.stringify(call),
    );
  }
}

/** Turns in memory end with their process. */
export const noTurnActors: TurnActorStore = {
  get: () => undefined,
  put: () => undefined,
  request: () => undefined,
  delete: () => undefined,
  calls: () => new Map(),
  putCall: () => undefined,
};
