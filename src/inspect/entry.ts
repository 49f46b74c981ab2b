import type { Ring } from '../lib/index.ts';
import type { ActorRecord, InspectionRecord } from '../protocol/index.ts';
import type { PlainFact } from './facts.ts';
import type { Configuration, MachineKnowledge, Step } from './steps.ts';

/**
 * One occurrence in a ring: references to existing objects, and numbers. The record that leaves the process is made when it
 * is read.
 */
export class RingEntry {
  /** Position among all entries of a recorder, from 1. */
  sequence = 0;
  watched: { readonly id: string; readonly knowledge: MachineKnowledge } | undefined;
  /** The record of any other occurrence than a transition of this process: rare enough to be made at once. */
  made: InspectionRecord | undefined;
  number = 0;
  /** Milliseconds since the Unix epoch. */
  at = 0;
  source: string | null = null;
  step: Step | undefined;
  from: Configuration | undefined;
  to: Configuration | undefined;
  names: readonly string[] = [];
  readonly values: PlainFact[] = [];

  get type(): InspectionRecord['type'] {
    return this.made?.type ?? 'transition';
  }

  takeFacts(names: readonly string[], values: readonly PlainFact[]): void {
    this.names = names;
    for (let index = 0; index < names.length; index += 1) this.values[index] = values[index] ?? null;
  }

  /** Copies a transition: rings share no entries, because each writes them over at its own time. */
  copy(other: RingEntry): void {
    this.sequence = other.sequence;
    this.watched = other.watched;
    this.made = other.made;
    this.number = other.number;
    this.at = other.at;
    this.source = other.source;
    this.step = other.step;
    this.from = other.from;
    this.to = other.to;
    this.takeFacts(other.names, other.values);
  }

  record(): InspectionRecord {
    return this.made ?? this.#transition();
  }

  #transition(): InspectionRecord {
    const { step, watched } = this;
    const ids = watched?.knowledge.ids ?? [];
    return {
      type: 'transition',
      id: watched?.id ?? '',
      step: this.number,
      at: new Date(this.at),
      event: step?.event ?? '',
      source: this.source,
      edges: step?.edges ?? [],
      from: this.from?.states ?? [],
      to: this.to?.states ?? [],
      entered: (step?.entered ?? []).map((order) => ids[order] ?? ''),
      actions: step?.actions ?? [],
      projection: factsOf(this.names, this.values),
    };
  }
}

export function factsOf(names: readonly string[], values: readonly PlainFact[]): ActorRecord['projection'] {
  const projection: ActorRecord['projection'] = {};
  for (const [index, name] of names.entries()) projection[name] = values[index] ?? null;
  return projection;
}

/**
 * Adds an entry to `ring`, to be written over by the caller: the oldest one of a full ring, else a new one. An entry that was read from the ring is valid until the next call. New entries would each survive a few garbage collections, which cost more
 * than all other work of the recorder.
 */
export function nextEntry(ring: Ring<RingEntry>): RingEntry {
  const entry = ring.takeIfFull() ?? new RingEntry();
  ring.push(entry);
  return entry;
}
