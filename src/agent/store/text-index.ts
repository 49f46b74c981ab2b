import { defaults } from '../../protocol/index.ts';
import type { Database } from './database.ts';
import { PacedWork } from './paced-work.ts';
import { isSearchable, itemsDue, textOf } from './texts.ts';

/** Turns per statement. */
const turnsAtOnce = 20;

const ended = `SELECT json_group_array(turn) AS turns FROM (
  SELECT turn FROM textsDue JOIN turns ON turns.key = turn WHERE status NOT IN ('running', 'waitingApproval') LIMIT ${turnsAtOnce})`;
const areThese = 'textsDue.turn IN (SELECT value FROM json_each(?))';
const noTurns = '[]';
const addTexts = `INSERT OR REPLACE INTO texts (rowid, text)
  SELECT items.key, ${textOf('items.json')} FROM ${itemsDue} WHERE ${areThese} AND ${isSearchable('items.json')}`;

/** Adds the texts of ended turns to the index, many turns per commit. Searches read texts that are not indexed yet from the items. */
export class TextIndex {
  readonly #database: Database;
  readonly #work: PacedWork;

  /** Starts with turns that an earlier process did not index. @param onFault called when a write fails */
  constructor(database: Database, onFault: (error: unknown) => void) {
    this.#database = database;
    const step = (until: number) => this.#isMoreAfter(until);
    this.#work = new PacedWork({ database, pauseMs: defaults.agent.textIndexMs, step, onFault });
  }

  /** Schedules the indexing. After an exit or a failed write, the next start or the next call continues. */
  turnEnded(): void {
    this.#work.start();
  }

  stop(): void {
    this.#work.stop();
  }

  /** Indexes one batch. @returns whether more turns are due */
  #isMoreAfter(until: number): boolean {
    let turns = this.#ended;
    if (turns === noTurns) return false;
    this.#database.together(() => {
      do {
        this.#database.run(addTexts, turns);
        this.#database.run(`DELETE FROM textsDue WHERE ${areThese}`, turns);
        turns = this.#ended;
      } while (turns !== noTurns && performance.now() < until);
    });
    return turns !== noTurns;
  }

  /** Keys of the next ended turns, as JSON. */
  get #ended(): string {
    return String(this.#database.get(ended)?.['turns']);
  }
}
