import { computed, type ReadonlySignal, signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import type { App } from '../../../app/app.ts';
import { Empty, Skeleton } from '../../../parts/empty.tsx';
import { Mark } from '../../../parts/icons.tsx';
import { fullState, lookOf } from '../../../parts/tone.ts';
import '../../actors/actors.css';
import { ChartView } from '../../actors/chart.tsx';
import type { ActorsLink, Picked } from '../../actors/link.ts';
import { createServerSource } from '../../actors/server-source.ts';
import { createStore, type Store } from '../../actors/store.ts';
import { everything } from '../../actors/tree-rows.ts';
import { NoStates } from './no-states.tsx';

interface TurnStatesProps {
  readonly app: App;
  readonly threadId: string;
  /** Shown turn. */
  readonly turn: ReadonlySignal<string | undefined>;
  /** Moment, in milliseconds since the epoch; undefined: the present. */
  readonly at: ReadonlySignal<number | undefined>;
}

/** Chart of a turn at a moment: its states and the path to them. */
export default function TurnStates({ app, threadId, turn, at }: TurnStatesProps) {
  const [store, setStore] = useState<Store | null>(null);
  useEffect(() => {
    const made = createStore(app, createServerSource, linkTo(threadId, turn, at));
    setStore(made);
    return () => made.close();
  }, [app, threadId, turn, at]);
  return store ? <Shown store={store} threadId={threadId} turn={turn.value} /> : <Skeleton />;
}

/** Links the actors to the cursor of a conversation. Writes nothing to the address. */
function linkTo(
  threadId: string,
  turn: ReadonlySignal<string | undefined>,
  at: ReadonlySignal<number | undefined>,
): ActorsLink {
  const pick = signal<Picked | null>(null);
  const actor = computed(() => `${threadId}/${turn.value ?? ''}`);
  return {
    actor,
    only: actor,
    tab: signal('events'),
    pick,
    asksToStop: signal(false),
    filter: signal(everything),
    set: (change) => {
      const [, kind, id = ''] = /^(state|edge):(.*)$/s.exec(change['pick'] ?? '') ?? [];
      pick.value = kind === undefined ? null : { kind: kind === 'state' ? 'state' : 'edge', id };
    },
    select: () => {},
    setFilter: () => {},
    travelWith: (travel, isLoaded, whole) => {
      const moment = computed(() => (isLoaded.value && whole.value ? at.value : undefined));
      return moment.subscribe((ms) => {
        queueMicrotask(() => (ms === undefined ? travel.leave() : travel.look({ at: ms, n: Number.MAX_SAFE_INTEGER })));
      });
    },
  };
}

interface ShownProps {
  readonly store: Store;
  readonly threadId: string;
  readonly turn: string | undefined;
}

function Shown({ store, threadId, turn }: ShownProps) {
  const actor = store.selected.value;
  const chart = store.chart.value;
  if (!store.isLoaded.value) return <Skeleton />;
  if (turn === undefined) return <Empty title="No turn has started" />;
  if (!actor || !chart) return <NoStates threadId={threadId} />;
  const { tone, shape } = lookOf(actor);
  return (
    <div class="turn-states">
      <p class={`about state ${tone}`} role="status">
        <Mark tone={tone} shape={shape} /> <b>{fullState(actor.states)}</b>
      </p>
      <div class="centre">
        <ChartView key={`${actor.id}:${chart.name}`} store={store} actor={actor} chart={chart} />
      </div>
    </div>
  );
}
