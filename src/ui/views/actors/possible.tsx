import { actionWords, causeOf, guardWords, pathTo, possibleIn, type Words } from '../../../inspect/browser.ts';
import type { Chart, ChartEdge } from '../../../protocol/index.ts';
import type { Store } from './store.ts';

interface PossibleProps {
  readonly store: Store;
  readonly chart: Chart;
  readonly words: Words;
  /** State whose events are listed. */
  readonly focus: string;
  /** The focus is the active state. */
  readonly isNow: boolean;
  readonly hasEnded: boolean;
  /** Numbers of the list are on the arrows. */
  readonly isNumbered: boolean;
}

/** The events of a state in words: condition, target and actions. */
export function PossibleList({ store, chart, words, focus, isNow, hasEnded, isNumbered }: PossibleProps) {
  const edges = possibleIn(chart.edges, pathTo(focus));
  const title = isNow ? 'Possible events' : `Possible events in ${focus.split('.').join(' · ')}`;
  const isOver = edges.length === 0 || (isNow && hasEnded);
  return (
    <section class="next-events" aria-label={title}>
      <h2>{title}</h2>
      {isOver ? (
        <p class="quiet">{isNow && hasEnded ? 'Nothing: it has ended.' : 'Nothing: this is a final state.'}</p>
      ) : (
        <ol class={isNumbered ? 'numbered' : ''}>
          {edges.map((edge, index) => (
            <li key={edge.id}>
              {isNumbered && <b class="number">{index + 1}</b>}
              <Cause store={store} edge={edge} />
              {edge.guard !== null && <span title={edge.guard}> {guardWords(words, edge.guard)}</span>}{' '}
              <b>{edge.points.length === 0 ? 'stays' : `→ ${edge.target.split('.').join(' · ')}`}</b>
              {edge.actions.length > 0 && (
                <span class="quiet" title={edge.actions.join(', ')}>
                  {' '}
                  {edge.actions.map((name) => actionWords(words, name)).join('; ')}
                </span>
              )}
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}

function Cause({ store, edge }: { readonly store: Store; readonly edge: ChartEdge }) {
  return (
    <button type="button" class="link mono" onClick={() => store.setPick({ kind: 'edge', id: edge.id })}>
      {causeOf(edge)}
    </button>
  );
}
