import { useSignal } from '@preact/signals';
import { timeOfDay } from '../../../parts/format.ts';
import { fullState } from '../../../parts/tone.ts';
import { VirtualList } from '../../../parts/virtual-list.tsx';
import type { LogEntry } from '../model.ts';
import type { PanelProps } from '../store.ts';

/** In CSS pixels, as in actors.css: two lines, and a third for the actions. */
const rowHeight = 42;
const doesHeight = 17;

/** Every stored transition, oldest first. Choosing one shows the actors at its moment. */
export function EventsPanel({ store, actor, whole }: PanelProps) {
  const text = useSignal('');
  const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
  const entries = words.length === 0 ? whole.log : whole.log.filter((entry) => isMatch(entry, words));
  const missing = (whole.log[0]?.record.step ?? whole.steps + 1) - 1;
  const isPast = store.travel.moment.value !== null;
  return (
    <div class="log">
      <div class="panel-tools">
        <input
          type="search"
          class="grow"
          placeholder="Event, state, action, sender"
          aria-label="Filter events"
          value={text.value}
          onInput={(event) => {
            text.value = event.currentTarget.value;
          }}
        />
        <span class="quiet">
          {entries.length === whole.steps ? whole.steps : `${entries.length} of ${whole.steps}`}
        </span>
      </div>
      {missing > 0 && <p class="quiet none">{missing} older not held</p>}
      {whole.log.length === 0 ? (
        <p class="quiet none">No transition yet.</p>
      ) : (
        <VirtualList
          label="Transitions, oldest first"
          count={entries.length}
          rowHeight={(index) => rowHeight + (entries[index]?.record.actions.length ? doesHeight : 0)}
          rowKey={(index) => entries[index]?.record.step ?? index}
          selected={isPast ? entries.findIndex(({ record }) => record.step === actor.steps) : -1}
          onSelect={(index) => {
            const entry = entries[index];
            if (entry) store.travel.look(entry);
          }}
          followsTail
          rowProps={(index) => ({ class: (entries[index]?.record.step ?? 0) > actor.steps ? 'later' : undefined })}
          renderRow={(index) => {
            const entry = entries[index];
            return entry && <Row entry={entry} title={titleOf} />;
          }}
        />
      )}
    </div>
  );

  function titleOf(id: string): string {
    return store.travel.base.value.byId.get(id)?.title ?? id;
  }
}

function isMatch({ record }: LogEntry, words: readonly string[]): boolean {
  const all = [record.event, record.source ?? '', ...record.from, ...record.to, ...record.actions];
  const text = all.join(' ').toLowerCase();
  return words.every((word) => text.includes(word));
}

function Row({ entry: { record }, title }: { readonly entry: LogEntry; readonly title: (id: string) => string }) {
  const from = fullState(record.from);
  const to = fullState(record.to);
  const home = record.from[0] === record.to[0] ? `${record.to[0]} · ` : '';
  return (
    <div class="step" title={record.at.toISOString()}>
      <time>{timeOfDay(record.at)}</time>
      <span class="number quiet">{record.step}</span>
      <b>{record.event}</b>
      {record.source !== null && <span class="quiet from">from {title(record.source)}</span>}
      <span class="move">
        {from === to ? (
          <span class="quiet">stays in {to}</span>
        ) : (
          <>
            {from} <i>→</i> {to.startsWith(home) ? to.slice(home.length) : to}
          </>
        )}
      </span>
      {record.actions.length > 0 && <span class="does">{record.actions.join(' · ')}</span>}
    </div>
  );
}
