import { splitPath } from '../../parts/format.ts';
import { fullState, lookOf, publicState, type Tone } from '../../parts/tone.ts';
import type { Actor, Actors } from './model.ts';

export type Order = 'name' | 'time' | 'failures';

/** Filter of the tree. */
export interface Filter {
  /** Words that must all be in the title, the machine or a state. */
  readonly text: string;
  readonly tone: Tone | null;
  readonly machine: string | null;
  readonly isInTrouble: boolean;
  readonly order: Order;
}

export const everything: Filter = { text: '', tone: null, machine: null, isInTrouble: false, order: 'name' };

export interface TreeRow {
  /** Actor of the row; null: the heading above the ended actors. */
  readonly actor: Actor | null;
  readonly id: string;
  readonly level: number;
  readonly position: number;
  readonly siblings: number;
  /** Whether its children are shown; undefined: it has none. */
  readonly isOpen: boolean | undefined;
}

/** Rows that the user has opened or closed, by id. */
export type Openings = ReadonlyMap<string, boolean>;

/** Id of the heading above the ended actors. */
export const endedId = '(ended)';

const number = (value: unknown): number => (typeof value === 'number' ? value : 0);

/** Number of known problems: failures, restarts, failed probes, lost events. */
export function troublesOf(actor: Actor): number {
  const { failures, attempt, probeFailures } = actor.projection;
  const counted = number(failures) + number(attempt) + number(probeFailures) + actor.restarts + actor.deadLetters;
  return counted + (actor.ending?.error == null ? 0 : 1);
}

/** Whether it needs attention, or did a short while ago. */
export function isInTrouble(actor: Actor): boolean {
  const { tone } = lookOf(actor);
  return tone === 'danger' || tone === 'warn' || troublesOf(actor) > 0;
}

const byName = new Intl.Collator(undefined, { numeric: true });
const orders: Readonly<Record<Order, (a: Actor, b: Actor) => number>> = {
  name: () => 0,
  time: (a, b) => b.since.getTime() - a.since.getTime(),
  failures: (a, b) => troublesOf(b) - troublesOf(a),
};

/** Active actors below their parents, by name; then the ended ones, newest first. */
interface Family {
  readonly generation: number;
  readonly children: ReadonlyMap<string | null, readonly string[]>;
  readonly ended: readonly string[];
}

/** Computes rows; parts that depend only on the process tree are cached until it changes. */
export class TreeRows {
  #family: Family | undefined;

  of(actors: Actors, filter: Filter, openings: Openings): TreeRow[] {
    const family = this.#familyOf(actors);
    const isWanted = matcher(filter);
    const living = rowsBelow(actors, family, null, 1, { filter, isWanted, openings });
    const ended = family.ended.flatMap((id) => actors.byId.get(id) ?? []).filter(isWanted);
    if (ended.length === 0) return living;
    const isOpen = openings.get(endedId) ?? true;
    const top = living.filter((row) => row.level === 1).length + 1;
    const heading: TreeRow = { actor: null, id: endedId, level: 1, position: top, siblings: top, isOpen };
    const rows = ended.map((actor, index): TreeRow => {
      const place = { position: index + 1, siblings: ended.length };
      return { actor, id: actor.id, level: 2, ...place, isOpen: undefined };
    });
    return [
      ...living.map((row) => (row.level === 1 ? { ...row, siblings: top } : row)),
      heading,
      ...(isOpen ? rows : []),
    ];
  }

  #familyOf(actors: Actors): Family {
    if (this.#family?.generation === actors.generation) return this.#family;
    this.#family = familyOf(actors);
    return this.#family;
  }
}

function familyOf(actors: Actors): Family {
  const children = new Map<string | null, Actor[]>();
  const ended: Actor[] = [];
  for (const actor of actors.byId.values()) {
    if (actor.ending) {
      ended.push(actor);
      continue;
    }
    const parent = actor.parent !== null && actors.byId.get(actor.parent)?.ending === null ? actor.parent : null;
    const siblings = children.get(parent);
    if (siblings) siblings.push(actor);
    else children.set(parent, [actor]);
  }
  for (const siblings of children.values()) siblings.sort((a, b) => byName.compare(a.title, b.title));
  ended.sort((a, b) => (b.ending?.at ?? 0) - (a.ending?.at ?? 0));
  return {
    generation: actors.generation,
    children: new Map([...children].map(([parent, list]) => [parent, list.map(({ id }) => id)])),
    ended: ended.map(({ id }) => id),
  };
}

/** A slot without a sidecar: every workspace has one, and the list leaves it out. */
const isEmptySlot = ({ machine, states }: Actor): boolean => machine === 'sidecar-slot' && states[0] === 'empty';

function matcher(filter: Filter): (actor: Actor) => boolean {
  const words = filter.text.toLowerCase().split(/\s+/).filter(Boolean);
  return (actor) => {
    if (isEmptySlot(actor)) return false;
    if (filter.tone !== null && lookOf(actor).tone !== filter.tone) return false;
    if (filter.machine !== null && actor.machine !== filter.machine) return false;
    if (filter.isInTrouble && !isInTrouble(actor)) return false;
    if (words.length === 0) return true;
    const text = `${actor.title} ${actor.machine} ${actor.states.join(' ')}`.toLowerCase();
    return words.every((word) => text.includes(word));
  };
}

interface Choice {
  readonly filter: Filter;
  readonly isWanted: (actor: Actor) => boolean;
  readonly openings: Openings;
}

/** The list of requests below a workspace is closed until the user opens it or looks for it. */
const isOpenFirst = (below: readonly TreeRow[], filter: Filter): boolean =>
  filter.text !== '' ||
  filter.machine !== null ||
  filter.tone !== null ||
  filter.isInTrouble ||
  below.some(({ actor }) => actor?.machine !== 'inbox-feed');

/** Matching rows and their ancestors, without the children of closed rows. */
function rowsBelow(actors: Actors, family: Family, parent: string | null, level: number, choice: Choice): TreeRow[] {
  const siblings = (family.children.get(parent) ?? []).flatMap((id) => actors.byId.get(id) ?? []);
  if (choice.filter.order !== 'name') siblings.sort(orders[choice.filter.order]);
  const groups = siblings.flatMap((actor) => {
    const below = rowsBelow(actors, family, actor.id, level + 1, choice);
    return below.length > 0 || choice.isWanted(actor) ? [{ actor, below }] : [];
  });
  return groups.flatMap(({ actor, below }, index) => {
    const isOpen =
      below.length === 0 ? undefined : (choice.openings.get(actor.id) ?? isOpenFirst(below, choice.filter));
    const place = { level, position: index + 1, siblings: groups.length };
    return [{ actor, id: actor.id, ...place, isOpen }, ...(isOpen === true ? below : [])];
  });
}

export interface Counts {
  readonly tones: ReadonlyMap<Tone, number>;
  readonly machines: ReadonlyMap<string, number>;
  readonly inTrouble: number;
  readonly living: number;
  readonly ended: number;
}

/** Counts the actors that have not ended, by tone and by machine. */
export function countsOf(actors: Actors): Counts {
  const tones = new Map<Tone, number>();
  const machines = new Map<string, number>();
  let inTrouble = 0;
  let living = 0;
  let ended = 0;
  for (const actor of actors.byId.values()) {
    if (isEmptySlot(actor)) continue;
    if (actor.ending) {
      ended += 1;
      continue;
    }
    living += 1;
    const { tone } = lookOf(actor);
    tones.set(tone, (tones.get(tone) ?? 0) + 1);
    machines.set(actor.machine, (machines.get(actor.machine) ?? 0) + 1);
    if (isInTrouble(actor)) inTrouble += 1;
  }
  return { tones, machines, inTrouble, living, ended };
}

/** State for a list; for an ended actor, its last state. */
export const stateWord = (actor: Actor): string =>
  actor.ending?.error != null ? 'crashed' : hasGivenUp(actor) ? fullState(actor.states) : publicState(actor.states);

const hasGivenUp = ({ states }: Actor): boolean => states.includes('exited.givenUp');

/** Name of an actor; for a workspace its path, split into the last segment (`tail`) and the part before it (`head`). */
export const nameOf = ({ machine, title }: Actor): { readonly head: string; readonly tail: string } =>
  machine === 'agent-server' ? splitPath(title) : { head: '', tail: title };
