import { effect, type ReadonlySignal, signal } from '@preact/signals';
import superjson from 'superjson';
import { unpackHistory } from '../../../inspect/browser.ts';
import type { InspectionRecord } from '../../../protocol/index.ts';
import type { Live, StreamEvent, StreamListener } from '../../app/live.ts';
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

/** @param only id of the one actor to follow; default: all */
export function createFeed(live: Live, only?: ReadonlySignal<string>): Feed {
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
    actors.value = apply(actors.peek(), events.flatMap(recordsIn), Date.now());
    // The first event of one actor has its record.
    if (only && events.length > 0) isLoaded.value = true;
  };
  const listener: StreamListener = {
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
  };
  const stop = effect(() => {
    isLoaded.value = false;
    return live.listen('inspect', listener, only?.value);
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

const recordsIn = ({ event, data }: StreamEvent): InspectionRecord[] =>
  event === 'history' ? unpackHistory(superjson.parse(data)) : [superjson.parse(data)];
