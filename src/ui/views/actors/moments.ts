import { type Actor, type Actors, enteredAt, hasMoved, type LogEntry, type Moment } from './model.ts';
import { counted, type Statistics } from './statistics.ts';

/** Whether `a` is after `b`. */
export const isAfter = (a: Moment, b: Moment): boolean => (a.at === b.at ? a.n > b.n : a.at > b.at);

/** Number of entries, in order, up to a moment. */
export function countUntil(entries: readonly Moment[], moment: Moment): number {
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const entry = entries[middle];
    if (entry && !isAfter(entry, moment)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** State of all actors at a moment, as far as their logs reach back. Omits actors that did not exist then. */
export function actorsAt(actors: Actors, moment: Moment): Actors {
  const byId = new Map<string, Actor>();
  for (const actor of actors.byId.values()) {
    if (actor.createdAt.getTime() <= moment.at) byId.set(actor.id, actorAt(actor, moment));
  }
  const deadLetters = actors.deadLetters.slice(0, countUntil(actors.deadLetters, moment));
  return { ...actors, byId, deadLetters };
}

function actorAt(actor: Actor, moment: Moment): Actor {
  const isLiving = actor.ending !== null && isAfter(actor.ending, moment);
  const ended = isLiving ? revived(actor) : actor;
  const count = countUntil(actor.log, moment);
  const later = actor.log.slice(count);
  const [next] = later;
  if (!next) return ended;
  const log = actor.log.slice(0, count);
  const since = enteredAt(actor, log) ?? next.at - (next.heldMs ?? 0);
  return {
    ...ended,
    states: next.record.from,
    projection: log.at(-1)?.record.projection ?? {},
    since: new Date(since),
    statistics: undone(ended.statistics, later),
    countedAt: since,
    steps: next.record.step - 1,
    log,
  };
}

/** State of an actor before its end: the time since it entered its last state is not counted yet. */
function revived(actor: Actor): Actor {
  const since = actor.since.getTime();
  const last = { from: [...actor.states], to: [] };
  const statistics = counted(actor.statistics, last, actor.countedAt - since, -1);
  return { ...actor, ending: null, statistics, countedAt: since };
}

function undone(statistics: Statistics, later: readonly LogEntry[]): Statistics {
  return later.reduceRight(
    (sum, { record, heldMs }) => (hasMoved(record) ? counted(sum, record, heldMs ?? 0, -1) : sum),
    statistics,
  );
}

/** One stop of the scrubber: something that happened. */
export interface Stop extends Moment {
  readonly actorId: string;
  readonly what: 'made' | 'moved' | 'ended' | 'deadLetter';
  /** Event of a transition or dead letter. */
  readonly event: string;
}

export const stopOf = ({ at, n, record }: LogEntry): Stop => ({
  at,
  n,
  actorId: record.id,
  what: 'moved',
  event: record.event,
});

/** All stored stops of all actors, oldest first. */
export function stopsOf(actors: Actors): Stop[] {
  const stops: Stop[] = [];
  for (const { id, createdAt, log, ending } of actors.byId.values()) {
    stops.push({ at: createdAt.getTime(), n: 0, actorId: id, what: 'made', event: '' });
    for (const entry of log) stops.push(stopOf(entry));
    if (ending) stops.push({ at: ending.at, n: ending.n, actorId: id, what: 'ended', event: '' });
  }
  for (const { at, n, record } of actors.deadLetters) {
    stops.push({ at, n, actorId: record.id, what: 'deadLetter', event: record.event });
  }
  return stops.sort((a, b) => a.at - b.at || a.n - b.n);
}
