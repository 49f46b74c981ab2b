import { randomBytes } from 'node:crypto';
import superjson from 'superjson';
import type { SseSource } from '../http/index.ts';
import { type SseFields, sseFrame } from '../lib/index.ts';
import { defaults, type InspectionRecord, type TransitionRecord } from '../protocol/index.ts';
import { packHistory } from './history.ts';
import type { NumberedRecord } from './journal.ts';
import type { Recorder } from './recorder-types.ts';
import { type StatelyOptions, statelyMessages } from './stately.ts';
import { wireOf } from './wire.ts';

/** Makes the events that carry a record, without their id. Empty: readers of this stream do not get the record. */
type Encode = (record: InspectionRecord) => readonly Omit<SseFields, 'id'>[];

/**
 * Creates the inspection stream: one SSE event per record, named by its type, its data superjson. A record is serialised
 * once for all viewers, and not at all without a viewer. A viewer that returns with its last id gets the records it
 * missed. When they are no longer held, or the viewer was disconnected for being slow, it gets a `dropped` record and all records again: after `dropped` a viewer forgets its actors, because an `actor` record for each one follows.
 */
export function createInspectionSource(recorder: Recorder): InspectionSource {
  return createSource(recorder, (record) => [{ event: record.type, data: wireOf(record) }]);
}

export interface InspectionSource extends SseSource {
  /**
   * Stream of one actor, existing or not. Begins with its record and a packed history, together at most
   * `defaults.inspect.actorBytes`, however many actors there are.
   */
  ofActor(id: string): SseSource;
}

/** The stream in the form that Stately's tools read: unnamed events, each the JSON of one `@statelyai/inspect` message. */
export function createStatelySource(recorder: Recorder, machines: StatelyOptions['machines']): SseSource {
  const messages = statelyMessages({ machines, actorOf: (id) => recorder.actor(id) });
  return createSource(recorder, (record) => messages(record).map((message) => ({ data: JSON.stringify(message) })));
}

function createSource(recorder: Recorder, encode: Encode): InspectionSource {
  const epoch = randomBytes(6).toString('base64url');
  const frames = (numbered: readonly NumberedRecord[]): Buffer =>
    Buffer.from(
      numbered
        .flatMap(({ sequence, record }) =>
          encode(record).map((fields) => sseFrame({ id: `${epoch}-${sequence}`, ...fields })),
        )
        .join(''),
    );

  /** All records of a snapshot carry the last id: resuming after any of them repeats some, and loses nothing. */
  function everything(lastEventId: string | undefined): Buffer[] {
    const records = recorder.snapshot();
    if (lastEventId !== undefined && records[0]?.type !== 'dropped') {
      const unknown: InspectionRecord = { type: 'dropped', count: 0, at: new Date() };
      records.unshift(unknown);
    }
    const { sequence } = recorder;
    return [frames(records.map((record) => ({ sequence, record })))];
  }

  /** First events of a viewer of one actor. */
  function beginOf(id: string, lastEventId: string | undefined): Buffer[] {
    const records = recorder.recordsOf(id);
    if (records.length === 0) return [];
    const reset: InspectionRecord[] = lastEventId === undefined ? [] : [{ type: 'dropped', count: 0, at: new Date() }];
    const { sequence } = recorder;
    const [head, end] = [[...reset, ...records.slice(0, 1)], records.filter(({ type }) => type === 'gone')].map(
      (some) => frames(some.map((record) => ({ sequence, record }))),
    );
    const left = defaults.inspect.actorBytes - (head?.byteLength ?? 0) - (end?.byteLength ?? 0);
    const steps = records.filter((record) => record.type === 'transition');
    return [head, historyFrame(steps, `${epoch}-${sequence}`, left), end].filter((part) => part !== undefined);
  }

  /** Records after an event that a viewer has received; undefined: some of them are no longer held. */
  function missedAfter(lastEventId: string | undefined): NumberedRecord[] | undefined {
    const sequence = lastEventId?.startsWith(`${epoch}-`) ? Number(lastEventId.slice(epoch.length + 1)) : Number.NaN;
    return Number.isSafeInteger(sequence) ? recorder.since(sequence) : undefined;
  }

  /** One listener at the recorder for all viewers, so that a batch is serialised once. */
  const viewers = new Set<{ readonly listener: (batch: Uint8Array) => void; readonly onEnd: () => void }>();
  let unsubscribe: (() => void) | undefined;

  return {
    replay(lastEventId) {
      const missed = missedAfter(lastEventId);
      if (!missed) return everything(lastEventId);
      return missed.length === 0 ? [] : [frames(missed)];
    },
    subscribe(listener, onEnd) {
      const viewer = { listener, onEnd };
      viewers.add(viewer);
      unsubscribe ??= recorder.subscribe(
        (records) => {
          const batch = frames(records);
          for (const each of [...viewers]) each.listener(batch);
        },
        () => {
          for (const each of [...viewers]) each.onEnd();
        },
      );
      return () => {
        viewers.delete(viewer);
        if (viewers.size > 0) return;
        unsubscribe?.();
        unsubscribe = undefined;
      };
    },
    ofActor(id) {
      const isOurs = ({ record }: NumberedRecord) => record.type === 'dropped' || record.id === id;
      return {
        replay(lastEventId) {
          const missed = missedAfter(lastEventId)?.filter(isOurs);
          return missed ? (missed.length === 0 ? [] : [frames(missed)]) : beginOf(id, lastEventId);
        },
        subscribe: (listener, onEnd) =>
          recorder.subscribe((records) => {
            const ours = records.filter(isOurs);
            if (ours.length > 0) listener(frames(ours));
          }, onEnd),
      };
    },
  };
}

/** Event of as many of the last transitions as fit; undefined without one. */
function historyFrame(steps: readonly TransitionRecord[], id: string, bytes: number): Buffer | undefined {
  const packed = packHistory(steps);
  if (packed === null) return undefined;
  const frame = Buffer.from(sseFrame({ id, event: 'history', data: superjson.stringify(packed) }));
  return frame.byteLength <= bytes ? frame : historyFrame(steps.slice(Math.ceil(steps.length / 8)), id, bytes);
}
