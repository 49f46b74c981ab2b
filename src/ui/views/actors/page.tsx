/** Actors of a server or a program: tree, states, the causes of each state, and earlier states. */
import { useEffect, useLayoutEffect, useState } from 'preact/hooks';
import type { App } from '../../app/app.ts';
import { Empty, Skeleton } from '../../parts/empty.tsx';
import './actors.css';
import { ChartView } from './chart.tsx';
import { ExportMenu } from './exports.tsx';
import { FilterBar } from './filter.tsx';
import { Head } from './head.tsx';
import { Panels } from './panels/panel.tsx';
import { PastBanner, Scrubber } from './scrubber.tsx';
import type { CreateSource } from './source.ts';
import { createStore, type Store } from './store.ts';
import { Tree } from './tree.tsx';
import { endedId } from './tree-rows.ts';

interface ActorsPageProps {
  readonly app: App;
  readonly createSource: CreateSource;
}

export function ActorsPage({ app, createSource }: ActorsPageProps) {
  const [store, setStore] = useState<Store | null>(null);
  // Runs before the first frame, which would otherwise be empty.
  useLayoutEffect(() => {
    const made = createStore(app, createSource);
    setStore(made);
    const unregister = app.commands.provide(finderOf(made));
    return () => {
      unregister();
      made.close();
    };
  }, [app, createSource]);
  return store ? <Actors store={store} /> : null;
}

/** Adds the actors to the palette, by name, machine and state. */
function finderOf(store: Store) {
  return {
    id: 'actors',
    group: 'Actor',
    find(query: string) {
      const words = query.toLowerCase();
      const found = [...store.travel.shown.peek().byId.values()].filter(({ title, machine, states }) =>
        `${title} ${machine} ${states.join(' ')}`.toLowerCase().includes(words),
      );
      return found.slice(0, 8).map(({ id, title, machine }) => ({
        id: `actor:${id}`,
        title,
        detail: machine,
        run: () => store.select(id),
      }));
    },
  };
}

function Actors({ store }: { readonly store: Store }) {
  const { app } = store;
  const actor = store.selected.value;
  const whole = store.whole.value;
  const title = whole?.title ?? null;
  useEffect(() => {
    app.subject.value = title;
  }, [app, title]);
  return (
    <div class={`actors ${app.router.route.value.path.length > 0 ? 'chosen' : ''}`}>
      <nav class="side" aria-label="Actors">
        <h1 class="unseen of-list">Actors</h1>
        <FilterBar store={store} />
        <Tree store={store} />
        <Hint store={store} />
        <footer class="side-foot">
          <span class="quiet">
            {store.counts.value.living} living
            {store.counts.value.ended > 0 && `, ${store.counts.value.ended} ended`}
            {store.live.value.dropped > 0 && `, ${store.live.value.dropped} older records not held`}
          </span>
          <ExportMenu store={store} />
        </footer>
      </nav>
      <section
        class={`about ${store.travel.moment.value === null ? '' : 'past'} ${store.simulation.simulated.value ? 'simulating' : ''}`}
        aria-label="Selected actor"
      >
        <PastBanner store={store} />
        {actor && whole ? (
          <>
            <Head store={store} actor={actor} />
            <div class="centre">
              <Chart store={store} />
            </div>
            <div class="beside">
              <Panels store={store} actor={actor} whole={whole} />
            </div>
          </>
        ) : (
          <>
            <h1 class="unseen">Actors</h1>
            <NoChart store={store} />
          </>
        )}
        <Scrubber store={store} />
      </section>
    </div>
  );
}

function Chart({ store }: { readonly store: Store }) {
  const actor = store.selected.value;
  const chart = store.chart.value;
  if (!actor) return null;
  if (chart) return <ChartView key={`${actor.id}:${chart.name}`} store={store} actor={actor} chart={chart} />;
  if (store.isPending(actor.machine)) return <Skeleton />;
  return <p class="no-chart">There is no chart of {actor.machine}. See its states in the next tab.</p>;
}

/** Reason for an empty chart. */
function NoChart({ store }: { readonly store: Store }) {
  const id = store.selectedId.value;
  const { byId } = store.travel.base.value;
  if (!store.isLoaded.value) return <Skeleton />;
  if (id === endedId)
    return <p class="no-chart">{store.counts.value.ended} actors ended recently. They are listed below.</p>;
  if (id !== null && byId.has(id)) return <p class="no-chart">This actor did not exist yet at this moment.</p>;
  if (id !== null && byId.size > 0) return <p class="no-chart">Actor {id} does not exist, or it was removed.</p>;
  if (store.app.page.value?.kind !== 'workspace') return <p class="no-chart">No actor is active.</p>;
  return (
    <Empty title="No turn runs in this workspace" command='oratorio chat "hello"'>
      <p>Active and recently ended turns, tool servers and automations appear here. Start a turn:</p>
    </Empty>
  );
}

/** Instructions for the first workspace. */
function Hint({ store }: { readonly store: Store }) {
  const isHub = store.app.page.value?.kind === 'hub';
  if (!isHub || store.opened.value || !store.isLoaded.value) return null;
  if ([...store.live.value.byId.values()].some((actor) => actor.machine === 'agent-server')) return null;
  return (
    <div class="hint">
      <Empty title="No workspace yet" command="oratorio up --init <dir>">
        <p>Start an agent server for a workspace:</p>
      </Empty>
    </div>
  );
}
