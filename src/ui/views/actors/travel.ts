import { batch, computed, type ReadonlySignal, signal } from '@preact/signals';
import type { Actors, Moment } from './model.ts';
import { actorsAt, countUntil, type Stop, stopOf, stopsOf } from './moments.ts';

/** Subject of the scrubber: the selected actor, or the whole tree. */
export type Scope = 'actor' | 'all';

/**
 * Time travel. The selected moment is taken from the records of this page; the actors themselves are not touched, and the
 * page keeps recording them.
 */
export interface Travel {
  /** Null: the present. */
  readonly moment: ReadonlySignal<Moment | null>;
  readonly scope: ReadonlySignal<Scope>;
  /** All stored data at the time when looking back began. */
  readonly base: ReadonlySignal<Actors>;
  /** Actors at the selected moment. */
  readonly shown: ReadonlySignal<Actors>;
  readonly stops: ReadonlySignal<readonly Stop[]>;
  /** Stops that have been passed: 0 to `stops.length`. */
  readonly position: ReadonlySignal<number>;
  readonly isPlaying: ReadonlySignal<boolean>;
  goTo(position: number): void;
  /** Moves one stop on or back; one stop after the last is the present. */
  step(by: 1 | -1): void;
  look(moment: Moment): void;
  setScope(scope: Scope): void;
  play(): void;
  pause(): void;
  /** Back to the present. */
  leave(): void;
}

export interface TravelOptions {
  /** The present: of the server, or of a recording. */
  readonly present: ReadonlySignal<Actors>;
  readonly selectedId: ReadonlySignal<string | null>;
}

const playMs = 700;

export function createTravel({ present, selectedId }: TravelOptions): Travel {
  const moment = signal<Moment | null>(null);
  const scope = signal<Scope>('actor');
  const frozen = signal<Actors | null>(null);
  const isPlaying = signal(false);
  let timer: ReturnType<typeof setInterval> | undefined;

  const base = computed(() => frozen.value ?? present.value);
  const shown = computed(() => (moment.value === null ? base.value : actorsAt(base.value, moment.value)));
  const stops = computed((): readonly Stop[] => {
    if (scope.value === 'all') return stopsOf(base.value);
    const actor = selectedId.value === null ? undefined : base.value.byId.get(selectedId.value);
    return actor?.log.map(stopOf) ?? [];
  });
  const position = computed(() => (moment.value === null ? stops.value.length : countUntil(stops.value, moment.value)));

  function look(next: Moment): void {
    batch(() => {
      frozen.value ??= present.peek();
      moment.value = { at: next.at, n: next.n };
    });
  }

  function pause(): void {
    clearInterval(timer);
    timer = undefined;
    isPlaying.value = false;
  }

  function leave(): void {
    pause();
    batch(() => {
      moment.value = null;
      frozen.value = null;
      scope.value = 'actor';
    });
  }

  function goTo(wanted: number): void {
    const all = stops.peek();
    const to = Math.max(0, Math.min(all.length, wanted));
    const stop = all[to - 1];
    const [first] = all;
    if (stop) look(stop);
    else if (first) look({ at: first.at, n: first.n - 1 });
  }

  function step(by: 1 | -1): void {
    const at = position.peek();
    if (by === 1 && at >= stops.peek().length) leave();
    else goTo(at + by);
  }

  return {
    moment,
    scope,
    base,
    shown,
    stops,
    position,
    isPlaying,
    goTo,
    step,
    look,
    setScope(next) {
      batch(() => {
        if (next === 'all') frozen.value ??= present.peek();
        scope.value = next;
        if (next === 'all' && moment.peek() === null) goTo(stops.peek().length);
      });
    },
    play() {
      if (stops.peek().length === 0) return;
      pause();
      if (position.peek() >= stops.peek().length) goTo(0);
      isPlaying.value = true;
      timer = setInterval(() => {
        goTo(position.peek() + 1);
        if (position.peek() >= stops.peek().length) pause();
      }, playMs);
    },
    pause,
    leave,
  };
}
