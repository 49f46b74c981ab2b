import { useSignal } from '@preact/signals';
import { splitPath, timeOfDay } from '../../../parts/format.ts';
import type { DeadLetter } from '../model.ts';
import type { PanelProps, Store } from '../store.ts';

/** Events that arrived after their actor had ended. No actor will handle them. */
export function LettersPanel({ store, actor }: PanelProps) {
  const ofAll = useSignal(actor.deadLetters === 0);
  const all = store.travel.shown.value.deadLetters;
  const letters = ofAll.value ? all : all.filter(({ record }) => record.id === actor.id);
  return (
    <div class="letters">
      <div class="panel-tools">
        <p class="quiet grow">Events for actors that had ended already.</p>
        <button
          type="button"
          aria-pressed={ofAll.value}
          onClick={() => {
            ofAll.value = !ofAll.value;
          }}
        >
          Of all actors
        </button>
      </div>
      {letters.length === 0 ? (
        <p class="quiet none">No event was lost{ofAll.value ? '' : ' on this actor'}.</p>
      ) : (
        <table class="table">
          <caption class="unseen">Dead letters, newest first</caption>
          <thead>
            <tr>
              <th scope="col">Time</th>
              <th scope="col">Event</th>
              <th scope="col">For</th>
              <th scope="col">From</th>
            </tr>
          </thead>
          <tbody>
            {[...letters].reverse().map((letter) => (
              <Row key={letter.n} store={store} letter={letter} />
            ))}
          </tbody>
        </table>
      )}
    </div>
  );
}

function Row({ store, letter }: { readonly store: Store; readonly letter: DeadLetter }) {
  const { record } = letter;
  const titleOf = (id: string) => splitPath(store.travel.base.value.byId.get(id)?.title ?? id).tail;
  return (
    <tr>
      <td class="mono" title={record.at.toISOString()}>
        {timeOfDay(record.at)}
      </td>
      <td class="mono">{record.event}</td>
      <td>
        <button type="button" class="link" title={record.id} onClick={() => store.select(record.id)}>
          {titleOf(record.id)}
        </button>
      </td>
      <td class={record.source === null ? 'quiet' : ''}>
        {record.source === null ? 'outside' : titleOf(record.source)}
      </td>
    </tr>
  );
}
