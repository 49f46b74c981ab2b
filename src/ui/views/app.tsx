import { useEffect, useRef } from 'preact/hooks';
import type { Store } from '../state/store.ts';
import { ChartView } from './chart.tsx';
import { Details } from './details.tsx';
import { Header } from './header.tsx';
import { Help } from './help.tsx';
import { NoToken, NoTurns, NoWorkspaces } from './pages.tsx';
import { Tree } from './tree.tsx';

export function App({ store }: { readonly store: Store }) {
  const filterBox = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const isTyping = event.target instanceof HTMLInputElement;
      if (event.key === '/' && !isTyping) {
        event.preventDefault();
        filterBox.current?.focus();
      } else if (event.key === '?' && !isTyping) {
        store.helpIsOpen.value = !store.helpIsOpen.value;
      } else if (event.key === 'Escape') {
        store.helpIsOpen.value = false;
        if (isTyping) {
          store.filter.value = '';
          filterBox.current?.blur();
        }
      }
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, [store]);

  if (store.connection.value.state === 'refused') {
    return <NoToken reason="The Hub does not accept this token (any more)." />;
  }
  const actor = store.selected.value;
  const chart = actor && store.charts.value.get(actor.machine);
  const actors = [...store.actors.value.byId.values()];
  // The same page is served by the Hub and by the agent server of one workspace.
  const isHub = actors.some((each) => each.machine === 'hub');
  const hasWorkspaces = actors.some((each) => each.machine === 'agent-server');
  return (
    <div class="app">
      <Header store={store} />
      <nav class="side" aria-label="Actors">
        <div class="filter">
          <input
            ref={filterBox}
            type="search"
            placeholder="Filter actors"
            aria-label="Filter actors"
            value={store.filter.value}
            onInput={(event) => {
              store.filter.value = event.currentTarget.value;
            }}
          />
          <kbd>/</kbd>
        </div>
        <Tree store={store} />
        {isHub && !hasWorkspaces && <NoWorkspaces />}
        {store.isTold.value && actors.length === 0 && <NoTurns />}
      </nav>
      <main class="centre">
        {actor && chart ? (
          <ChartView key={`${actor.id}:${chart.name}`} actor={actor} chart={chart} />
        ) : (
          <p class="waiting">
            {actor ? `No chart for ${actor.machine}.` : store.isTold.value ? 'Nothing runs just now.' : 'Waiting…'}
          </p>
        )}
      </main>
      <aside class="details" aria-label="Selected actor">
        {actor && <Details store={store} actor={actor} />}
      </aside>
      <Help store={store} />
    </div>
  );
}
