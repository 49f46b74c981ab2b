import { randomBytes } from 'node:crypto';
import superjson from 'superjson';
import type { SseSource } from '../http/index.ts';
import type { InspectionRecord } from '../protocol/index.ts';
import type { NumberedRecord, Recorder } from './recorder.ts';

/**
 * The inspection stream: one SSE event per record, named by its type, its data superjson. Nothing is serialised while
 * nobody watches, and once for all who do. A viewer that comes back with the id it saw last gets what it missed; when
 * that is no longer held (or the viewer was cut off for being slow) it gets a `dropped` record and everything anew:
 * after `dropped` a viewer forgets its actors, because an `actor` record for each living one follows.
 */
export function createInspectionSource(recorder: Recorder): SseSource {
  const epoch = randomBytes(6).toString('base64url');
  const frame = ({ sequence, record }: NumberedRecord): string =>
    `id: ${epoch}-${sequence}\nevent: ${record.type}\ndata: ${superjson.stringify(record)}\n\n`;

  /** All records of a snapshot carry the last id: resuming after any of them repeats some, and loses nothing. */
  function everything(lastEventId: string | undefined): Buffer[] {
    const records = recorder.snapshot();
    if (lastEventId !== undefined && records[0]?.type !== 'dropped') {
      const unknown: InspectionRecord = { type: 'dropped', count: 0, at: new Date() };
      records.unshift(unknown);
    }
    const { sequence } = recorder;
    return [Buffer.from(records.map((record) => frame({ sequence, record })).join(''))];
  }

  return {
    replay(lastEventId) {
      const sequence = lastEventId?.startsWith(`${epoch}-`) ? Number(lastEventId.slice(epoch.length + 1)) : Number.NaN;
      const missed = Number.isSafeInteger(sequence) ? recorder.since(sequence) : undefined;
      if (!missed) return everything(lastEventId);
      return missed.length === 0 ? [] : [Buffer.from(missed.map(frame).join(''))];
    },
    subscribe: (() => {
      // One listener at the recorder for all viewers, so that a batch is serialised once.
      const viewers = new Map<object, { listener: (batch: Uint8Array) => void; onEnd: () => void }>();
      let unsubscribe: (() => void) | undefined;
      return (listener: (batch: Uint8Array) => void, onEnd: () => void) => {
        const viewer = { listener, onEnd };
        viewers.set(viewer, viewer);
        unsubscribe ??= recorder.subscribe(
          (records) => {
            const batch = Buffer.from(records.map(frame).join(''));
            for (const each of [...viewers.values()]) each.listener(batch);
          },
          () => {
            for (const each of [...viewers.values()]) each.onEnd();
          },
        );
        return () => {
          viewers.delete(viewer);
          if (viewers.size > 0) return;
          unsubscribe?.();
          unsubscribe = undefined;
        };
      };
    })(),
  };
}
