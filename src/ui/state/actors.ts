import type { ActorRecord, InspectionRecord, TransitionRecord } from '../../protocol/index.ts';

/** One actor as this page knows it. */
export interface Actor {
  readonly id: string;
  readonly parent: string | null;
  readonly machine: string;
  readonly title: string;
  readonly states: readonly string[];
  readonly projection: ActorRecord['projection'];
  /** When it got into its present state, as far as known. */
  readonly since: Date;
  readonly log: readonly TransitionRecord[];
  /** Transitions since the actor was made. */
  readonly steps: number;
}

export interface Actors {
  readonly byId: ReadonlyMap<string, Actor>;
  /** Records that are missing from the logs. */
  readonly dropped: number;
}

export const noActors: Actors = { byId: new Map(), dropped: 0 };

const logLimit = 300;

/**
 * Applies records in order. `dropped` means that something is missing: what is known of actors is forgotten, because a
 * record for each living one follows.
 */
export function apply(actors: Actors, records: readonly InspectionRecord[]): Actors {
  const byId = new Map(actors.byId);
  let { dropped } = actors;
  for (const record of records) {
    switch (record.type) {
      case 'actor': {
        const { id, parent, machine, title, states, projection } = record;
        byId.set(id, { id, parent, machine, title, states, projection, since: record.at, log: [], steps: 0 });
        break;
      }
      case 'transition': {
        const actor = byId.get(record.id);
        if (actor && record.step > actor.steps) byId.set(record.id, withTransition(actor, record));
        break;
      }
      case 'gone':
        byId.delete(record.id);
        break;
      case 'dropped':
        byId.clear();
        dropped = record.count;
        break;
    }
  }
  return { byId, dropped };
}

function withTransition(actor: Actor, record: TransitionRecord): Actor {
  const moved = record.from.join() !== record.to.join();
  return {
    ...actor,
    states: record.to,
    projection: record.projection,
    since: moved ? record.at : actor.since,
    log: [...actor.log.slice(-logLimit + 1), record],
    steps: record.step,
  };
}

export interface TreeRow {
  readonly actor: Actor;
  readonly level: number;
  readonly position: number;
  readonly siblings: number;
}

/** Actors in tree order, those that match the filter and what they hang below. Siblings are sorted by title. */
export function treeOf(actors: Actors, filter: string): TreeRow[] {
  const children = new Map<string | null, Actor[]>();
  for (const actor of actors.byId.values()) {
    const parent = actor.parent !== null && actors.byId.has(actor.parent) ? actor.parent : null;
    children.set(parent, [...(children.get(parent) ?? []), actor]);
  }
  for (const siblings of children.values()) siblings.sort((a, b) => a.title.localeCompare(b.title));
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = (actor: Actor) => {
    const text = `${actor.title} ${actor.machine} ${actor.states.join(' ')}`.toLowerCase();
    return words.every((word) => text.includes(word));
  };
  const rowsBelow = (parent: string | null, level: number): TreeRow[] => {
    const siblings = children.get(parent) ?? [];
    return siblings.flatMap((actor, index) => {
      const below = rowsBelow(actor.id, level + 1);
      if (below.length === 0 && !matches(actor)) return [];
      return [{ actor, level, position: index + 1, siblings: siblings.length }, ...below];
    });
  };
  return rowsBelow(null, 1);
}
