import type { ComponentType } from 'preact';
import { useId } from 'preact/hooks';
import { type Tab, tabs } from '../link.ts';
import type { PanelProps } from '../store.ts';
import { useCommands } from '../use-commands.ts';
import { DiffPanel } from './diff.tsx';
import { EventsPanel } from './events.tsx';
import { LettersPanel } from './letters.tsx';
import { SequencePanel } from './sequence.tsx';
import { SnapshotPanel } from './snapshot.tsx';
import { StatesPanel } from './states.tsx';
import { WhyPanel } from './why.tsx';

const panels: Readonly<Record<Tab, { readonly title: string; readonly Panel: ComponentType<PanelProps> }>> = {
  events: { title: 'Events', Panel: EventsPanel },
  sequence: { title: 'Sequence', Panel: SequencePanel },
  states: { title: 'States', Panel: StatesPanel },
  snapshot: { title: 'Snapshot', Panel: SnapshotPanel },
  diff: { title: 'Diff', Panel: DiffPanel },
  why: { title: 'Why', Panel: WhyPanel },
  deadLetters: { title: 'Dead letters', Panel: LettersPanel },
};

/** Details of an actor beside its chart. */
export function Panels({ store, actor, whole }: PanelProps) {
  const id = useId();
  const present = store.tab.value;
  const { Panel } = panels[present];
  useCommands(
    store.app,
    tabs.map((tab, index) => ({
      id: `actors.tab.${tab}`,
      title: `Show ${panels[tab].title.toLowerCase()} of the actor`,
      group: 'Actors',
      keys: [String(index + 1)],
      run: () => store.setTab(tab),
    })),
  );
  const onKeyDown = (event: KeyboardEvent) => {
    const at = tabs.indexOf(present);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    const next = to === undefined ? undefined : tabs[(to + tabs.length) % tabs.length];
    if (!next) return;
    event.preventDefault();
    store.setTab(next);
    document.getElementById(`${id}-${next}`)?.focus();
  };
  return (
    <>
      <div class="tabs" role="tablist" aria-label="About this actor" onKeyDown={onKeyDown}>
        {tabs.map((tab, index) => (
          <button
            key={tab}
            type="button"
            role="tab"
            id={`${id}-${tab}`}
            aria-selected={tab === present}
            aria-controls={`${id}-panel`}
            tabIndex={tab === present ? 0 : -1}
            title={`${panels[tab].title} (${index + 1})`}
            onClick={() => store.setTab(tab)}
          >
            {panels[tab].title}
            {tab === 'deadLetters' && whole.deadLetters > 0 && <b class="count-of">{whole.deadLetters}</b>}
          </button>
        ))}
      </div>
      <div
        class={`panel of-${present}`}
        role="tabpanel"
        id={`${id}-panel`}
        aria-labelledby={`${id}-${present}`}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be focusable (WCAG 2.1.1)
        tabIndex={0}
      >
        <Panel key={whole.id} store={store} actor={actor} whole={whole} />
      </div>
    </>
  );
}
