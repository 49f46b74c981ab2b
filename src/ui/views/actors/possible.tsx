import { actionWords, causeOf, guardWords, type Words } from '../../../inspect/browser.ts';
import type { Chart, ChartEdge } from '../../../protocol/index.ts';
import type { Actor } from './model.ts';
import { possibleEdges } from './states.ts';
import type { Store } from './store.ts';

interface PossibleProps {
  readonly store: Store;
  readonly chart: Chart;
  readonly actor: Actor;
  readonly words: Words;
  readonly isOpen: boolean;
}

/** Drawer over the lower edge of a chart: the transitions of the active states, and of the picked one, with their owners. */
export function PossibleList({ store, chart, actor, words, isOpen }: PossibleProps) {
  const pick = store.pick.value;
  const states = pick?.kind === 'state' ? pathTo(pick.id) : actor.states;
  const edges = actor.ending && states === actor.states ? [] : possibleEdges(chart, states);
  return (
    <section class="next-events" aria-label="Next" hidden={!isOpen}>
      {edges.length === 0 && <p class="quiet">Nothing: it has ended.</p>}
      <ul aria-label="What can happen now">
        {edges.map((edge) => (
          <li key={edge.id} data-edge={`${edge.source}→${edge.target}`}>
            <Cause store={store} edge={edge} />
            {edge.guard !== null && <span title={edge.guard}> {guardWords(words, edge.guard)}</span>}{' '}
            <b>{edge.points.length === 0 ? 'stays' : `→ ${edge.target.split('.').join(' · ')}`}</b>
            {edge.actions.length > 0 && (
              <span class="quiet" title={edge.actions.join(', ')}>
                {' '}
                {edge.actions.map((name) => actionWords(words, name)).join('; ')}
              </span>
            )}{' '}
            <i class="quiet">{ownerOf(chart, edge)}</i>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Ids of a state and of those around it. */
const pathTo = (id: string): string[] => id.split('.').map((_, index, keys) => keys.slice(0, index + 1).join('.'));

/** State that owns a transition: one that holds others has it in each of them. */
function ownerOf({ nodes }: Chart, { source }: ChartEdge): string {
  if (source === '') return 'in every state';
  const name = source.split('.').join(' · ');
  return nodes.some(({ parent }) => parent === source) ? `in every state of ${name}` : `in ${name}`;
}

function Cause({ store, edge }: { readonly store: Store; readonly edge: ChartEdge }) {
  return (
    <button type="button" class="link mono" onClick={() => store.setPick({ kind: 'edge', id: edge.id })}>
      {causeOf(edge)}
    </button>
  );
}
