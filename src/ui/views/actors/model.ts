/**
 * The actors that this page knows, made from records and nothing else. Values are immutable: new records do not change a
 * selected moment.
 */
import type {
  ActorRecord,
  DeadLetterRecord,
  GoneRecord,
  InspectionRecord,
  TransitionRecord,
} from '../../../protocol/index.ts';
import { counted, type Statistics, statisticsAt } from './statistics.ts';

/** A position in the record stream: a time, and for things of the same millisecond the order of arrival. */
export interface Moment {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly n: number;
}

export interface LogEntry extends Moment {
  readonly record: TransitionRecord;
  /** Time in the states before, in milliseconds; null: the actor entered them before the first known record. */
  readonly heldMs: number | null;
  /** When this page received it live, in milliseconds since the epoch; 0: it is history. */
  readonly heardAt: number;
}

export interface DeadLetter extends Moment {
  readonly record: DeadLetterRecord;
}

/** End of an actor. */
export interface Ending extends Moment {
  readonly error: string | null;
}

export interface Actor {
  readonly id: string;
  readonly parent: string | null;
  readonly machine: string;
  readonly title: string;
  readonly createdAt: Date;
  readonly states: readonly string[];
  readonly projection: ActorRecord['projection'];
  /** When it entered its present state. */
  readonly since: Date;
  /** Statistics by state id. Active states are counted up to `countedAt`: `since`, or the end of an ended actor. */
  readonly statistics: Statistics;
  readonly countedAt: number;
  /** Number of earlier actors with the same id. */
  readonly restarts: number;
  /** Transitions since the actor was made. */
  readonly steps: number;
  /** The last transitions, by step, without gaps. */
  readonly log: readonly LogEntry[];
  /** Number of stored events that it never handled. */
  readonly deadLetters: number;
  readonly ending: Ending | null;
}

export interface Actors {
  readonly byId: ReadonlyMap<string, Actor>;
  readonly deadLetters: readonly DeadLetter[];
  /** Records that are missing from the logs. */
  readonly dropped: number;
  /** Next number of a received record. */
  readonly recordCount: number;
  /** Transitions held in all logs. */
  readonly held: number;
  /** Changes when an actor is made, ends or is forgotten: then the tree has another order. */
  readonly generation: number;
}

export const noActors: Actors = {
  byId: new Map(),
  deadLetters: [],
  dropped: 0,
  recordCount: 0,
  held: 0,
  generation: 0,
};

/** Limits for one actor, for all actors together, and for ended ones: the memory of a tab must not grow without limit. */
export const limits = { log: 500, held: 20_000, deadLetters: 500, ended: 200 } as const;

/**
 * Applies records in order. `dropped` means that records are missing: it clears all actors, because a
 * record for each one follows.
 * @param heardAt the present, in milliseconds since the epoch
 */
export function apply(actors: Actors, records: readonly InspectionRecord[], heardAt: number): Actors {
  const draft = new Draft(actors, heardAt);
  for (const record of records) draft.take(record);
  return draft.finish();
}

/** Copies each changed collection once per batch, however many records the batch has. */
class Draft {
  #byId: Map<string, Actor>;
  #deadLetters: DeadLetter[];
  /** Actors of this batch whose log is a copy of our own already. */
  readonly #own = new Map<string, LogEntry[]>();
  readonly #heardAt: number;
  #dropped: number;
  #recordCount: number;
  #held: number;
  #generation: number;

  constructor(actors: Actors, heardAt: number) {
    this.#byId = new Map(actors.byId);
    this.#deadLetters = [...actors.deadLetters];
    this.#heardAt = heardAt;
    this.#dropped = actors.dropped;
    this.#recordCount = actors.recordCount;
    this.#held = actors.held;
    this.#generation = actors.generation;
  }

  take(record: InspectionRecord): void {
    this.#recordCount += 1;
    if (record.type === 'actor') this.#admit(record);
    else if (record.type === 'transition') this.#move(record);
    else if (record.type === 'deadLetter') this.#lose(record);
    else if (record.type === 'gone') this.#end(record);
    else this.#forget(record.count);
  }

  finish(): Actors {
    if (this.#held > limits.held * 1.1) this.#trim();
    return {
      byId: this.#byId,
      deadLetters: this.#deadLetters.slice(-limits.deadLetters),
      dropped: this.#dropped,
      recordCount: this.#recordCount,
      held: this.#held,
      generation: this.#generation,
    };
  }

  #admit(record: ActorRecord): void {
    this.#remove(record.id);
    const { id, parent, machine, title, states, projection, since, statistics, steps, endedAt, restarts } = record;
    this.#byId.set(id, {
      id,
      parent,
      machine,
      title,
      createdAt: record.at,
      states,
      projection,
      since,
      statistics,
      countedAt: (endedAt ?? since).getTime(),
      restarts: restarts ?? 0,
      steps,
      log: [],
      deadLetters: this.#deadLetters.filter((letter) => letter.record.id === id).length,
      ending: endedAt ? { at: endedAt.getTime(), n: this.#recordCount, error: null } : null,
    });
    this.#generation += 1;
    if (endedAt) this.#bury();
  }

  #move(record: TransitionRecord): void {
    const actor = this.#byId.get(record.id);
    if (!actor) return;
    const log = this.#logOf(actor);
    const before = log.at(-1);
    if (before && record.step <= before.record.step) return;
    // A gap: earlier entries do not lead to this record.
    if (before && record.step !== before.record.step + 1) this.#held -= log.splice(0).length;
    const isNews = record.step > actor.steps;
    const at = record.at.getTime();
    const origin = isNews ? actor.since.getTime() : record.step === 1 || log.length > 0 ? enteredAt(actor, log) : null;
    const heldMs = origin === null ? null : Math.max(0, at - origin);
    log.push({ n: this.#recordCount, at, record, heldMs, heardAt: isNews ? this.#heardAt : 0 });
    this.#held += 1;
    if (log.length > limits.log) this.#held -= log.splice(0, log.length - limits.log).length;
    this.#byId.set(record.id, isNews ? advanced(actor, record, log) : { ...actor, log });
  }

  #lose(record: DeadLetterRecord): void {
    this.#deadLetters.push({ n: this.#recordCount, at: record.at.getTime(), record });
    const actor = this.#byId.get(record.id);
    if (actor) this.#byId.set(actor.id, { ...actor, deadLetters: actor.deadLetters + 1 });
  }

  #end(record: GoneRecord): void {
    const actor = this.#byId.get(record.id);
    if (!actor) return;
    const at = record.at.getTime();
    const ending = { at, n: this.#recordCount, error: record.error ?? null };
    this.#byId.set(actor.id, { ...actor, ending, statistics: statisticsAt(actor, at), countedAt: at });
    this.#generation += 1;
    this.#bury();
  }

  #forget(missing: number): void {
    this.#byId = new Map();
    this.#own.clear();
    this.#deadLetters = [];
    this.#dropped = missing;
    this.#held = 0;
    this.#generation += 1;
  }

  /** The log of an actor, safe to be added to. */
  #logOf(actor: Actor): LogEntry[] {
    const own = this.#own.get(actor.id);
    if (own) return own;
    const log = [...actor.log];
    this.#own.set(actor.id, log);
    return log;
  }

  #remove(id: string): void {
    const actor = this.#byId.get(id);
    if (!actor) return;
    this.#byId.delete(id);
    this.#own.delete(id);
    this.#held -= actor.log.length;
  }

  /** Removes the oldest ended actors beyond the limit. */
  #bury(): void {
    const ended = [...this.#byId.values()].filter((actor) => actor.ending !== null);
    if (ended.length <= limits.ended) return;
    ended.sort((a, b) => (a.ending?.at ?? 0) - (b.ending?.at ?? 0));
    for (const actor of ended.slice(0, ended.length - limits.ended)) this.#remove(actor.id);
  }

  /** Takes the oldest transitions of all out of their logs. */
  #trim(): void {
    const all = [...this.#byId.values()].flatMap((actor) => actor.log.map((entry) => entry.n));
    all.sort((a, b) => a - b);
    const oldest = all[all.length - limits.held] ?? 0;
    for (const actor of this.#byId.values()) {
      if ((actor.log[0]?.n ?? oldest) >= oldest) continue;
      this.#byId.set(actor.id, { ...actor, log: actor.log.filter((entry) => entry.n >= oldest) });
    }
    this.#own.clear();
    this.#held = limits.held;
  }
}

/** Whether a transition led to other states, or left and re-entered the current ones. */
export const hasMoved = ({ from, to, entered }: TransitionRecord): boolean =>
  (entered !== undefined && entered.length > 0) || from.join() !== to.join();

/** When the states at the end of a log were entered; null: the log does not reach back that far. */
export function enteredAt(actor: Pick<Actor, 'createdAt'>, log: readonly LogEntry[]): number | null {
  const moved = log.findLast(({ record }) => hasMoved(record));
  if (moved) return moved.at;
  return (log[0]?.record.step ?? 1) === 1 ? actor.createdAt.getTime() : null;
}

function advanced(actor: Actor, record: TransitionRecord, log: readonly LogEntry[]): Actor {
  const next = { ...actor, states: record.to, projection: record.projection, steps: record.step, log };
  if (!hasMoved(record)) return next;
  const at = record.at.getTime();
  const statistics = counted(actor.statistics, record, Math.max(0, at - actor.countedAt), 1);
  return { ...next, since: record.at, statistics, countedAt: at };
}
