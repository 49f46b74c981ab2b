import superjson from 'superjson';
import { copyText } from '../../../parts/copy.tsx';
import { humanName } from '../../../parts/format.ts';
import { leavesOf } from '../../../parts/tone.ts';
import { factText } from '../facts.ts';
import type { PanelProps } from '../store.ts';

/** Visible data of the actor: the machine's allow-listed projection, and its states. */
export function SnapshotPanel({ store, actor }: PanelProps) {
  const facts = Object.entries(actor.projection);
  const { WholeFact } = store;
  const isPresent = store.travel.moment.value === null && store.opened.value === null && actor.ending === null;
  const copy = () => {
    const { id, machine, states, steps, since, projection } = actor;
    const snapshot = superjson.serialize({ id, machine, states, steps, since, projection });
    copyText(store.app, JSON.stringify(snapshot, null, 2), 'Snapshot');
  };
  return (
    <div class="snapshot">
      <div class="panel-tools">
        <p class="quiet grow">
          After {actor.steps} transitions.{' '}
          {WholeFact ? 'Long values are shortened.' : "Only the machine's listed facts leave the process."}
        </p>
        <button type="button" onClick={copy}>
          Copy as JSON
        </button>
      </div>
      <ul class="state-tree" aria-label="Active states">
        {actor.states.map((state) => {
          const depth = state.split('.').length - 1;
          return (
            <li
              key={state}
              style={{ 'padding-left': `${depth * 16}px` }}
              class={leavesOf(actor.states).includes(state) ? 'leaf' : ''}
            >
              {depth > 0 && '└ '}
              {state.split('.').at(-1)}
            </li>
          );
        })}
      </ul>
      <table class="table">
        <caption class="unseen">Facts</caption>
        <thead>
          <tr>
            <th scope="col">Fact</th>
            <th scope="col">Value</th>
            <th scope="col">Kind</th>
          </tr>
        </thead>
        <tbody>
          {facts.map(([name, value]) => (
            <tr key={name}>
              <th scope="row" title={name}>
                {humanName(name)}
              </th>
              <td class="mono">
                {factText(name, value)}
                {isPresent && WholeFact && typeof value === 'string' && (
                  <WholeFact key={actor.id} id={actor.id} name={name} shown={value} />
                )}
              </td>
              <td class="quiet kind">{value === null ? 'nothing' : value instanceof Date ? 'time' : typeof value}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {facts.length === 0 && <p class="quiet none">Nothing of it was recorded at this moment.</p>}
    </div>
  );
}
