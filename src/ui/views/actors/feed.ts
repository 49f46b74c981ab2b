import { type ReadonlySignal, signal } from '@preact/signals';
import superjson from 'superjson';
import type { InspectionRecord } from '../../../protocol/index.ts';
import type { Live, StreamEvent } from '../../app/live.ts';
import { type Actors, apply, noActors } from './model.ts';

/** Time after which a new stream has sent all its present actors. */
const quietMs = 300;
/** Interval without frames: a hidden tab draws none, but must not accumulate records without limit. */
const unseenMs = 500;

/** The actors of the stream: one change per frame, however many records arrive. */
export interface Feed {
  readonly actors: ReadonlySignal<Actors>;
  /** Whether the stream has sent everything at least once. */
  readonly isLoaded: ReadonlySignal<boolean>;
  /** Ends the feed. */
  close(): void;
}

export function createFeed(live: Live): Feed {
  const actors = signal<Actors>(noActors);
  const isLoaded = signal(false);
  const waiting: StreamEvent[] = [];
  let frame = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let quiet: ReturnType<typeof setTimeout> | undefined;

  const flush = () => {
    cancelAnimationFrame(frame);
    clearTimeout(timer);
    timer = undefined;
    const events = waiting.splice(0);
    const records = events.map((event) => superjson.parse<InspectionRecord>(event.data));
    actors.value = apply(actors.peek(), records, Date.now());
  };
  const stop = live.listen('inspect', {
    onReset: () => {
      waiting.length = 0;
      actors.value = noActors;
      clearTimeout(quiet);
      // Without actors the server sends nothing: the empty tree is then complete.
      quiet = setTimeout(() => {
        if (waiting.length > 0) flush();
        isLoaded.value = true;
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
    isLoaded,
    close() {
      stop();
      cancelAnimationFrame(frame);
      clearTimeout(timer);
      clearTimeout(quiet);
    },
  };
}
