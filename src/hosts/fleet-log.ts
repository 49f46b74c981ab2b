import type { SseSource } from '../http/index.ts';
import { Ring, sseFrame } from '../lib/index.ts';
import { type AnyHubEvent, defaults, type FleetEvent } from '../protocol/index.ts';

interface Stored {
  /** Position in the whole log, from 1. */
  readonly sequence: number;
  readonly host: string;
  readonly eventId: string;
  readonly vector: string;
  readonly frame: Uint8Array;
}

interface Subscriber {
  readonly listener: (batch: Uint8Array) => void;
  readonly onEnd: () => void;
}

/** Accepted form of an event id. Ids of remote Hubs are untrusted. */
const eventIdShape = /^[A-Za-z0-9-]{1,64}$/;
export const isEventId = (id: string): boolean => eventIdShape.test(id);

/** Size limit of a `Last-Event-ID`: 50 hosts with names and ids of the greatest length. */
const maxVector = 8_192;

/** Parses a vector `<host>~<id>,…` and skips invalid parts. */
function positionsIn(vector: string): ReadonlyMap<string, string> {
  const parts = vector.slice(0, maxVector).split(',');
  const found = parts.flatMap((part) => {
    const [host = '', id = ''] = part.split('~');
    return isEventId(id) ? [[host, id] as const] : [];
  });
  return new Map(found);
}

/**
 * Bounded ring of the events of this Hub and of all hosts, in order of arrival. The id of a frame is a vector of the last id of
 * each Hub, so a client resumes all of them with one `Last-Event-ID`.
 */
export class FleetLog implements SseSource {
  readonly #ring = new Ring<Stored>({
    maxItems: defaults.sse.ringEvents,
    maxBytes: defaults.sse.ringBytes,
    bytesOf: ({ frame }) => frame.byteLength,
  });
  readonly #positions = new Map<string, string>();
  readonly #subscribers = new Set<Subscriber>();
  #last = 0;
  #undelivered: Uint8Array[] = [];
  #isEnded = false;

  /**
   * @param host name of the host; '' for this Hub
   * @param id see `isEventId`; an event with another one is left out
   * @returns size of the event in bytes
   */
  append(host: string, id: string, event: AnyHubEvent): number {
    if (!isEventId(id)) return 0;
    this.#positions.set(host, id);
    const vector = this.#vector();
    const stored = { sequence: this.#last + 1, host, eventId: id, vector, frame: frameOf(vector, host, id, event) };
    this.#last += 1;
    this.#ring.push(stored);
    if (this.#subscribers.size > 0) {
      if (this.#undelivered.length === 0) setImmediate(() => this.#deliver());
      this.#undelivered.push(stored.frame);
    }
    return stored.frame.byteLength;
  }

  /** Removes the position of a removed host. */
  forget(host: string): void {
    this.#positions.delete(host);
  }

  replay(lastEventId: string | undefined): readonly Uint8Array[] {
    this.#deliver();
    if (lastEventId === undefined) return [];
    const held = this.#ring.last();
    const exact = held.findLast(({ vector }) => vector === lastEventId);
    if (exact) return held.filter(({ sequence }) => sequence > exact.sequence).map(({ frame }) => frame);
    const gaps: Uint8Array[] = [];
    const from = new Map<string, number>();
    for (const [host, id] of positionsIn(lastEventId)) {
      const isNewest = this.#positions.get(host) === id;
      const known = held.findLast((each) => each.host === host && each.eventId === id);
      from.set(host, isNewest ? this.#last : (known?.sequence ?? 0));
      if (!isNewest && !known) gaps.push(this.#gap(host, id));
    }
    const missed = held.filter(({ host, sequence }) => sequence > (from.get(host) ?? 0));
    return [...gaps, ...missed.map(({ frame }) => frame)];
  }

  subscribe(listener: (batch: Uint8Array) => void, onEnd: () => void): () => void {
    if (this.#isEnded) {
      queueMicrotask(onEnd);
      return () => {};
    }
    this.#deliver();
    const subscriber = { listener, onEnd };
    this.#subscribers.add(subscriber);
    return () => void this.#subscribers.delete(subscriber);
  }

  end(): void {
    this.#deliver();
    this.#isEnded = true;
    for (const { onEnd } of this.#subscribers) onEnd();
    this.#subscribers.clear();
  }

  #vector(): string {
    return [...this.#positions].map(([host, id]) => `${host}~${id}`).join(',');
  }

  #gap(host: string, lastEventId: string): Uint8Array {
    const data = { lastEventId, reason: 'evicted' };
    const event = { kind: 'hub.gap', at: new Date().toISOString(), workspacePath: null, data };
    return frameOf(this.#vector(), host, lastEventId, event);
  }

  #deliver(): void {
    if (this.#undelivered.length === 0) return;
    const batch = Buffer.concat(this.#undelivered);
    this.#undelivered = [];
    for (const { listener } of [...this.#subscribers]) listener(batch);
  }
}

function frameOf(vector: string, host: string, id: string, { kind, at, workspacePath, data }: AnyHubEvent): Uint8Array {
  const event: FleetEvent = { id: `${host}~${id}`, host: host === '' ? null : host, kind, at, workspacePath, data };
  // A hostile Hub may send a kind with a line break.
  const name = /^[\w.]{1,64}$/.test(kind) ? kind : 'message';
  return Buffer.from(sseFrame({ id: vector, event: name, data: JSON.stringify(event) }));
}
