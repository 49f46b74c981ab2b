import { withoutTokens } from '../../../lib/browser.ts';
import { streamEvents } from '../../../protocol/browser.ts';
import type { StreamEvent } from '../../app/live.ts';
import { type Filter, matches } from './filter.ts';

/** One line of the firehose: an event, or a gap of missing events. */
export interface FirehoseEntry {
  /** Position since the view was opened, from 1; 0 and less: before. Identifies the row. */
  readonly seq: number;
  /** Id from the server; '' when it has none. */
  readonly id: string;
  readonly type: string;
  /** When it happened, in milliseconds since the epoch. */
  readonly at: number;
  /** Unchanged data of the event. */
  readonly data: string;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly isGap: boolean;
}

/**
 * The last events, bounded; the list of matching events is updated as they come. Pausing freezes the shown list, while
 * new events are stored up to the bound; those beyond it are counted.
 */
export class Firehose {
  readonly #bound: number;
  #entries: FirehoseEntry[] = [];
  #shown: FirehoseEntry[] = [];
  #filter: Filter = { types: [], fields: [], texts: [], without: [] };
  #paused: readonly FirehoseEntry[] | null = null;
  /** Last event of the list while it is paused. */
  #pausedAt = 0;
  #unseen = 0;
  #seq = 0;
  #evicted = 0;
  /** Number of the first event of the stream, which is complete from there. */
  #first: number | undefined;

  /** @param bound most events that are stored */
  constructor(bound: number) {
    this.#bound = bound;
  }

  /** Visible events, oldest first. */
  get shown(): readonly FirehoseEntry[] {
    return this.#paused ?? this.#shown;
  }

  /** Number of all stored events, matching or not. */
  get size(): number {
    return this.#entries.length;
  }

  /** Number of events that the bound has removed. */
  get evicted(): number {
    return this.#evicted;
  }

  get isPaused(): boolean {
    return this.#paused !== null;
  }

  /** Number of matching events since the pause. */
  get unseen(): number {
    return this.#unseen;
  }

  push(events: readonly StreamEvent[]): readonly FirehoseEntry[] {
    const received = events.filter(({ event }) => event !== streamEvents.hello).map(entryOf);
    if (this.#first === undefined) this.#join(received);
    return this.#append(received.map((entry) => ({ ...entry, seq: ++this.#seq })));
  }

  /** Adds earlier events, oldest first, without events that the stream has sent or is about to send. */
  begin(events: readonly StreamEvent[]): void {
    const last = Math.min(0, (this.#entries[0]?.seq ?? 1) - 1);
    const earlier = events
      .map((event, index) => ({ ...entryOf(event), seq: last + index + 1 - events.length }))
      .filter((entry) => this.#isEarlier(entry));
    this.#entries.unshift(...earlier);
    this.#shown.unshift(...earlier.filter((entry) => this.#isWanted(entry)));
  }

  /** Marks a place where events may be missing. */
  gap(reason: string): void {
    if (this.#entries.length === 0 || this.#entries.at(-1)?.isGap) return;
    this.#append([{ seq: ++this.#seq, id: '', type: 'gap', at: Date.now(), data: reason, fields: {}, isGap: true }]);
  }

  find(filter: Filter): void {
    this.#filter = filter;
    this.#shown = this.#entries.filter((entry) => this.#isWanted(entry));
    if (this.#paused) this.#paused = this.#shown.filter(({ seq }) => seq <= this.#pausedAt);
  }

  pause(): void {
    this.#paused = [...this.#shown];
    this.#pausedAt = this.#seq;
    this.#unseen = 0;
  }

  resume(): void {
    this.#paused = null;
    this.#unseen = 0;
  }

  clear(): void {
    this.#entries = [];
    this.#shown = [];
    this.#evicted = 0;
    this.resume();
  }

  /** Removes fetched events that the stream sends, too. */
  #join(received: readonly Omit<FirehoseEntry, 'seq'>[]): void {
    this.#first = received.map(numberOf).find((id) => id !== undefined);
    if (this.#first === undefined) return;
    this.#entries = this.#entries.filter((entry) => this.#isEarlier(entry));
    this.#shown = this.#shown.filter((entry) => this.#isEarlier(entry));
  }

  #isEarlier(entry: Omit<FirehoseEntry, 'seq'>): boolean {
    const id = numberOf(entry);
    return id === undefined || this.#first === undefined || id < this.#first;
  }

  #append(entries: readonly FirehoseEntry[]): readonly FirehoseEntry[] {
    const wanted = entries.filter((entry) => this.#isWanted(entry));
    for (const entry of entries) this.#entries.push(entry);
    for (const entry of wanted) this.#shown.push(entry);
    if (this.#paused) this.#unseen += wanted.length;
    this.#evict();
    return wanted;
  }

  /** Removes old events in large steps: shifting an array of thousands for each event would be too slow. */
  #evict(): void {
    const excess = this.#entries.length - this.#bound;
    if (excess <= this.#bound / 10) return;
    this.#evicted += excess;
    this.#entries = this.#entries.slice(excess);
    const oldest = this.#entries[0]?.seq ?? 0;
    const first = this.#shown.findIndex(({ seq }) => seq >= oldest);
    this.#shown = first < 0 ? [] : this.#shown.slice(first);
  }

  #isWanted(entry: FirehoseEntry): boolean {
    return entry.isGap || matches(this.#filter, entry);
  }
}

/** Number of a trace event, or of an event of the Hub, whose ids are `epoch-number`. */
function numberOf({ fields, id }: Omit<FirehoseEntry, 'seq'>): number | undefined {
  if (typeof fields['id'] === 'number') return fields['id'];
  const number = /^\w+-(\d+)$/.exec(id)?.[1];
  return number === undefined ? undefined : Number(number);
}

/** Turns a record into an entry for people: removes the tokens of its addresses. */
function entryOf({ id, event, data: sent }: StreamEvent): Omit<FirehoseEntry, 'seq'> {
  const data = withoutTokens(sent);
  const fields = fieldsOf(data);
  const at = typeof fields['at'] === 'string' ? Date.parse(fields['at']) : Number.NaN;
  const isGap = event === streamEvents.gap || event === 'hub.gap';
  return { id, type: event, at: Number.isNaN(at) ? Date.now() : at, data, fields, isGap };
}

function fieldsOf(data: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(data);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
