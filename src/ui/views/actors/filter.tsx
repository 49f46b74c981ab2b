import { useRef } from 'preact/hooks';
import { type Tone, toneWords } from '../../parts/tone.ts';
import { isComposing } from '../../parts/typing.ts';
import type { Store } from './store.ts';
import { everything, type Order } from './tree-rows.ts';
import { useCommands } from './use-commands.ts';

const orders: readonly (readonly [Order, string])[] = [
  ['name', 'by name'],
  ['time', 'by last change'],
  ['failures', 'by failures'],
];

/** Filter of the tree: words, and pills with the number of actors of each kind. */
export function FilterBar({ store }: { readonly store: Store }) {
  const input = useRef<HTMLInputElement>(null);
  const { tones, machines, inTrouble } = store.counts.value;
  const filter = store.filter.value;
  useFilterCommands(store, () => input.current?.focus());
  return (
    <div class="filter">
      <div class="find">
        <label>
          <input
            ref={input}
            type="search"
            placeholder="Filter actors"
            aria-label="Filter actors"
            value={filter.text}
            onInput={(event) => store.setFilter({ text: event.currentTarget.value })}
            onKeyDown={(event) => {
              if (event.key !== 'Escape' || isComposing(event)) return;
              event.preventDefault();
              store.setFilter({ text: '' });
              event.currentTarget.blur();
            }}
          />
          <kbd>/</kbd>
        </label>
        <select
          aria-label="Order of actors"
          value={filter.order}
          onChange={(event) => {
            const order = orders.find(([each]) => each === event.currentTarget.value)?.[0];
            if (order) store.setFilter({ order });
          }}
        >
          {orders.map(([order, words]) => (
            <option key={order} value={order}>
              {words}
            </option>
          ))}
        </select>
      </div>
      <fieldset class="pills" aria-label="Show only">
        {(Object.entries(toneWords) as [Tone, string][]).map(([tone, word]) =>
          tones.has(tone) || filter.tone === tone ? (
            <Pill
              key={tone}
              class={tone}
              count={tones.get(tone) ?? 0}
              isOn={filter.tone === tone}
              onClick={() => store.setFilter({ tone: filter.tone === tone ? null : tone })}
            >
              {word}
            </Pill>
          ) : null,
        )}
        {(inTrouble > 0 || filter.isInTrouble) && (
          <Pill
            count={inTrouble}
            isOn={filter.isInTrouble}
            onClick={() => store.setFilter({ isInTrouble: !filter.isInTrouble })}
          >
            in trouble
          </Pill>
        )}
        {(machines.size > 1 || filter.machine !== null) &&
          [...new Set([...machines.keys(), ...(filter.machine === null ? [] : [filter.machine])])]
            .sort()
            .map((machine) => (
              <Pill
                key={machine}
                class="machine"
                count={machines.get(machine) ?? 0}
                isOn={filter.machine === machine}
                onClick={() => store.setFilter({ machine: filter.machine === machine ? null : machine })}
              >
                {machine}
              </Pill>
            ))}
      </fieldset>
    </div>
  );
}

function useFilterCommands(store: Store, focus: () => void): void {
  useCommands(store.app, [
    {
      id: 'actors.filter',
      title: 'Filter actors by name or state',
      group: 'Actors',
      keys: ['/'],
      run: () => focus(),
    },
    {
      id: 'actors.filterTrouble',
      title: 'Show only actors in trouble',
      group: 'Actors',
      keys: ['x'],
      run: () => store.setFilter({ isInTrouble: !store.filter.peek().isInTrouble }),
    },
    {
      id: 'actors.filterClear',
      title: 'Show all actors',
      group: 'Actors',
      run: () => store.setFilter(everything),
    },
  ]);
}

interface PillProps {
  readonly class?: string;
  readonly count: number;
  readonly isOn: boolean;
  readonly onClick: () => void;
  readonly children: string;
}

function Pill({ class: tone = '', count, isOn, onClick, children }: PillProps) {
  return (
    <button type="button" class={`filter-pill ${tone}`} aria-pressed={isOn} onClick={onClick}>
      <b>{count}</b> {children}
    </button>
  );
}
