import { type ReadonlySignal, signal } from '@preact/signals';
import superjson from 'superjson';
import type { InspectionRecord } from '../../../protocol/index.ts';
import type { Live, StreamEvent } from '../../app/live.ts';
import { type Actors, apply, noActors } from './model.ts';

/** A server tells what it has at once; what comes later is news. */
const quietMs = 300;
/** A tab that is not seen draws no frames, but must not pile up what it is told. */
const unseenMs = 500;

/** The actors as the stream tells them: one change per frame, however many records come. */
export interface Feed {
  readonly actors: ReadonlySignal<Actors>;
  /** Whether the stream has told everything at least once. */
  readonly isTold: ReadonlySignal<boolean>;
  /** Ends it. */
  close(): void;
}

export function createFeed(live: Live): Feed {
  const actors = signal<Actors>(noActors);
  const isTold = signal(false);
  const waiting: StreamEvent[] = [];
  let frame = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let quiet: ReturnType<typeof setTimeout> | undefined;
  let isHistory = true;

  const flush = () => {
    cancelAnimationFrame(frame);
    clearTimeout(timer);
    timer = undefined;
    const events = waiting.splice(0);
    const records = events.map((event) => superjson.parse<InspectionRecord>(event.data));
    actors.value = apply(actors.peek(), records, isHistory ? 0 : Date.now());
  };
  const settle = () => {
    isHistory = false;
    isTold.value = true;
  };
  const stop = live.listen('inspect', {
    onReset: () => {
      waiting.length = 0;
      actors.value = noActors;
      isHistory = true;
      clearTimeout(quiet);
      // Where no actor lives nothing is told: then that is what there is to know.
      quiet = setTimeout(() => {
        if (waiting.length > 0) flush();
        settle();
      }, quietMs);
    },
    onEvents: (events) => {
      waiting.push(...events);
      if (timer !== undefined) return;
      frame = requestAnimationFrame(flush);
      timer = setTimeout(flush, unseenMs);
    },
  });
  return {
    actors,
    isTold,
    close() {
      stop();
      cancelAnimationFrame(frame);
      clearTimeout(timer);
      clearTimeout(quiet);
    },
  };
}
