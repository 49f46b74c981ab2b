import type { Actor, Actors, Moment } from './model.ts';
import { isAfter } from './moments.ts';

/** Column of the sequence view. `outside` stands for everything except actors: people, processes, sockets. */
export interface Lane {
  readonly id: string;
  readonly title: string;
  readonly kind: 'outside' | 'parent' | 'self' | 'child' | 'other';
}

/** An event on its way from one lane to another; within one lane: a timer, or the actor's own doing. */
export interface Message extends Moment {
  readonly from: string;
  readonly to: string;
  readonly event: string;
  /** Result: the receiver's states, null for an event without a receiver. */
  readonly states: readonly string[] | null;
  /** Step of the receiver; null for an event that was not handled. */
  readonly step: number | null;
}

export interface Sequence {
  readonly lanes: readonly Lane[];
  readonly messages: readonly Message[];
}

export const outside = '(outside)';
const others = '(others)';
/** Most lanes that a person can distinguish. */
const mostLanes = 8;

/** Events that an actor raises itself: its timers, and the ends and errors of its invoked actors. */
const isOwn = (event: string): boolean => /^(always$|after\(|done\(|error\(|snapshot\()/.test(event);

/** Events that an actor received and sent, in order: from its own records, and from the records of the receivers. */
export function sequenceOf(actors: Actors, actor: Actor): Sequence {
  const messages: Message[] = [];
  for (const each of actors.byId.values()) {
    for (const { at, n, record } of each.log) {
      if (record.id !== actor.id && record.source !== actor.id) continue;
      const from = record.source ?? (isOwn(record.event) ? record.id : outside);
      messages.push({ at, n, from, to: record.id, event: record.event, states: record.to, step: record.step });
    }
  }
  for (const { at, n, record } of actors.deadLetters) {
    if (record.id !== actor.id && record.source !== actor.id) continue;
    const from = record.source ?? outside;
    messages.push({ at, n, from, to: record.id, event: record.event, states: null, step: null });
  }
  messages.sort((a, b) => (isAfter(a, b) ? 1 : -1));
  const lanes = lanesOf(actors, actor, messages);
  const shown = new Set(lanes.map(({ id }) => id));
  if (!shown.has(others)) return { lanes, messages };
  const laneOf = (id: string) => (shown.has(id) ? id : others);
  return { lanes, messages: messages.map((each) => ({ ...each, from: laneOf(each.from), to: laneOf(each.to) })) };
}

function lanesOf(actors: Actors, actor: Actor, messages: readonly Message[]): Lane[] {
  const titleOf = (id: string) => actors.byId.get(id)?.title ?? id;
  const lanes: Lane[] = [
    { id: outside, title: 'outside', kind: 'outside' },
    ...(actor.parent === null ? [] : [{ id: actor.parent, title: titleOf(actor.parent), kind: 'parent' as const }]),
    { id: actor.id, title: actor.title, kind: 'self' },
  ];
  const known = new Set(lanes.map(({ id }) => id));
  // Latest senders first: of a thousand children only those that matter now get a lane.
  const partners = new Set([...messages].reverse().flatMap(({ from, to }) => [from, to]));
  for (const each of actors.byId.values()) if (each.parent === actor.id && each.ending === null) partners.add(each.id);
  const rest = [...partners].filter((id) => !known.has(id));
  const room = mostLanes - lanes.length;
  const chosen = rest.length <= room ? rest : rest.slice(0, room - 1);
  for (const id of chosen) {
    lanes.push({ id, title: titleOf(id), kind: actors.byId.get(id)?.parent === actor.id ? 'child' : 'other' });
  }
  const left = rest.length - chosen.length;
  return left === 0 ? lanes : [...lanes, { id: others, title: `${left} others`, kind: 'other' }];
}
