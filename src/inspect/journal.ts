import { Ring } from '../lib/index.ts';
import { defaults, type GoneRecord, type InspectionRecord, type TransitionRecord } from '../protocol/index.ts';
import { nextEntry, type RingEntry } from './entry.ts';
import type { Watched } from './watched.ts';

/** Time as the recorder sees it. */
export interface RecorderClock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  setTimeout(callback: () => void, milliseconds: number): unknown;
  clearTimeout(timer: unknown): void;
}

export const systemClock: RecorderClock = {
  now: () => Date.now(),
  setTimeout: (callback, milliseconds) => setTimeout(callback, milliseconds).unref(),
  clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout),
};

/** A record with its position among all records of this recorder, from 1. */
export interface NumberedRecord {
  readonly sequence: number;
  readonly record: InspectionRecord;
}

type Listener = (records: readonly NumberedRecord[]) => void;

export interface JournalOptions {
  readonly clock: RecorderClock;
  /** Entries that are held. */
  readonly records: number;
  /** Ended actors that are still reported. */
  readonly ended: number;
  readonly onFault: (error: unknown) => void;
}

/** Holds the last entries of all actors, and the actors; delivers new records to listeners. */
export class Journal {
  readonly #options: JournalOptions;
  readonly #ring: Ring<RingEntry>;
  readonly #living = new Map<string, Watched>();
  /** Active actors by the id of their parent: the end of one of 10,000 must not search through all. */
  readonly #children = new Map<string, Set<Watched>>();
  /** In the order in which they ended. */
  readonly #ended = new Map<string, Watched>();
  readonly #listeners = new Map<Listener, (() => void) | undefined>();
  #timer: unknown;
  #sequence = 0;
  /** Sequence of the last entry that was delivered to the listeners. */
  #delivered = 0;

  constructor(options: JournalOptions) {
    this.#options = options;
    this.#ring = new Ring({ maxItems: options.records });
  }

  get sequence(): number {
    return this.#sequence;
  }

  get viewers(): number {
    return this.#listeners.size;
  }

  find(id: string): Watched | undefined {
    return this.#living.get(id) ?? this.#ended.get(id);
  }

  /** Active children of this actor in XState; without roots that are only shown below it. */
  childrenOf(watched: Watched): Watched[] {
    return [...(this.#children.get(watched.id) ?? [])].filter(({ ref }) => ref?._parent !== undefined);
  }

  admit(watched: Watched): void {
    this.#ended.delete(watched.id);
    const known = this.#living.get(watched.id);
    if (known) this.#removeChild(known);
    this.#living.set(watched.id, watched);
    if (watched.parent !== null) this.#childrenBelow(watched.parent).add(watched);
    this.append(watched, watched.record());
  }

  #childrenBelow(parent: string): Set<Watched> {
    const known = this.#children.get(parent) ?? new Set();
    this.#children.set(parent, known);
    return known;
  }

  #removeChild(watched: Watched): void {
    if (watched.parent === null) return;
    const siblings = this.#children.get(watched.parent);
    siblings?.delete(watched);
    if (siblings?.size === 0) this.#children.delete(watched.parent);
  }

  dismiss(watched: Watched, gone: GoneRecord): void {
    if (this.#living.get(watched.id) === watched) {
      this.#living.delete(watched.id);
      this.#removeChild(watched);
      this.#ended.set(watched.id, watched);
      for (const [id] of this.#ended) {
        if (this.#ended.size <= this.#options.ended) break;
        this.#ended.delete(id);
      }
    }
    watched.gone = { sequence: this.append(watched, gone), record: gone };
  }

  /** Appends a record other than a transition. Returns its sequence number. */
  append(watched: Watched, record: InspectionRecord): number {
    const entry = nextEntry(this.#ring);
    this.#sequence += 1;
    entry.sequence = this.#sequence;
    entry.watched = watched;
    entry.made = record;
    this.#scheduleDelivery();
    return entry.sequence;
  }

  /** Appends a transition of an earlier process. */
  appendPast(watched: Watched, record: TransitionRecord): void {
    const entry = nextEntry(watched.history);
    entry.watched = watched;
    entry.made = record;
    entry.number = record.step;
    this.appendStep(entry);
  }

  appendStep(step: RingEntry): void {
    this.#sequence += 1;
    step.sequence = this.#sequence;
    nextEntry(this.#ring).copy(step);
    this.#scheduleDelivery();
  }

  /** Delivers the records of one moment together. */
  #scheduleDelivery(): void {
    if (this.#listeners.size === 0 || this.#timer !== undefined) return;
    this.#timer = this.#options.clock.setTimeout(() => this.#guarded(() => this.flush()), defaults.inspect.coalesceMs);
  }

  historyOf(id: string, after: number): TransitionRecord[] {
    const entries = this.find(id)?.history.last() ?? [];
    const wanted = entries.filter((entry) => entry.number > after);
    return wanted.map((entry) => entry.record()).filter((record) => record.type === 'transition');
  }

  recordsOf(id: string): InspectionRecord[] {
    this.flush();
    const watched = this.find(id);
    if (!watched) return [];
    return [watched.record(), ...this.historyOf(id, 0), ...(watched.gone ? [watched.gone.record] : [])];
  }

  /** Delivers pending records to the listeners, or all records again when some of them are no longer held. */
  flush(): void {
    if (this.#timer !== undefined) this.#options.clock.clearTimeout(this.#timer);
    this.#timer = undefined;
    const after = this.#delivered;
    this.#delivered = this.#sequence;
    if (this.#listeners.size === 0 || after === this.#sequence) return;
    const { sequence } = this;
    const batch = this.#after(after) ?? this.#allRecords().map((record) => ({ sequence, record }));
    for (const listener of [...this.#listeners.keys()]) this.#guarded(() => listener(batch));
  }

  subscribe(listener: Listener, onEnd: (() => void) | undefined): () => void {
    this.flush();
    this.#listeners.set(listener, onEnd);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  snapshot(): InspectionRecord[] {
    this.flush();
    return this.#allRecords();
  }

  since(sequence: number): NumberedRecord[] | undefined {
    this.flush();
    return this.#after(sequence);
  }

  close(): void {
    this.#guarded(() => this.flush());
    for (const onEnd of [...this.#listeners.values()]) this.#guarded(() => onEnd?.());
    this.#listeners.clear();
  }

  /** A fault of one listener does not affect the others. */
  #guarded(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#options.onFault(error);
    }
  }

  #after(sequence: number): NumberedRecord[] | undefined {
    const count = this.#sequence - sequence;
    if (count < 0 || count > this.#ring.size) return undefined;
    return this.#ring.last(count).map((entry) => ({ sequence: entry.sequence, record: entry.record() }));
  }

  #allRecords(): InspectionRecord[] {
    const actors = [...this.#living.values(), ...this.#ended.values()].sort((a, b) => a.position - b.position);
    const missing = this.#ring.dropped;
    return [
      ...(missing > 0 ? [{ type: 'dropped' as const, count: missing, at: new Date(this.#options.clock.now()) }] : []),
      ...actors.map((watched) => watched.record()),
      ...this.#historyRecords(actors),
    ];
  }

  /** Records in the ring, and for each actor at least its share of history, however busy the other actors are. */
  #historyRecords(actors: readonly Watched[]): InspectionRecord[] {
    const shown = new Set<RingEntry['watched']>(actors);
    const records = new Map<number, InspectionRecord>();
    for (const entry of this.#ring.last()) {
      // The snapshot begins with the actors. The recipient of a dead letter may not be shown any more.
      const isReported = entry.type === 'deadLetter' || (entry.type !== 'actor' && shown.has(entry.watched));
      if (isReported) records.set(entry.sequence, entry.record());
    }
    const share = Math.max(1, Math.floor(this.#options.records / Math.max(1, actors.length)));
    for (const { history, gone } of actors) {
      for (const entry of history.last(share)) {
        if (!records.has(entry.sequence)) records.set(entry.sequence, entry.record());
      }
      if (gone) records.set(gone.sequence, gone.record);
    }
    return [...records].sort(([a], [b]) => a - b).map(([, record]) => record);
  }
}
