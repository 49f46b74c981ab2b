import { actionWords, guardWords, noWords, type Words } from '../../../../inspect/browser.ts';
import type { Chart, ChartEdge, ChartNode } from '../../../../protocol/index.ts';
import { duration, timeOfDay } from '../../../parts/format.ts';
import { Mark } from '../../../parts/icons.tsx';
import { lookOf } from '../../../parts/tone.ts';
import type { LogEntry } from '../model.ts';
import { edgeTitle, possibleEdges } from '../states.ts';
import { heatOf, statisticsAt } from '../statistics.ts';
import type { PanelProps, Store } from '../store.ts';

/** The chart in words: the picked state or arrow, the possible events, and every state with its counts. */
export function StatesPanel({ store, actor }: PanelProps) {
  const chart = store.chart.value;
  if (!chart) return <p class="quiet none">There is no chart of {actor.machine}.</p>;
  const pick = store.pick.value;
  const node = pick?.kind === 'state' ? chart.nodes.find(({ id }) => id === pick.id) : undefined;
  const edge = pick?.kind === 'edge' ? chart.edges.find(({ id }) => id === pick.id) : undefined;
  return (
    <div class="states">
      {node && <StateCard store={store} chart={chart} node={node} log={actor.log} />}
      {edge && <EdgeCard store={store} edge={edge} log={actor.log} />}
      <section>
        <h2>Possible events</h2>
        {actor.ending ? (
          <p class="quiet">Nothing: it has ended.</p>
        ) : (
          <Possible store={store} chart={chart} states={actor.states} />
        )}
      </section>
      <StateTable store={store} chart={chart} actor={actor} />
    </div>
  );
}

function Possible({ store, chart, states }: { store: Store; chart: Chart; states: readonly string[] }) {
  const edges = possibleEdges(chart, states);
  if (edges.length === 0) return <p class="quiet">Nothing: this is a final state.</p>;
  return <EdgeList store={store} edges={edges} />;
}

function EdgeList({ store, edges }: { readonly store: Store; readonly edges: readonly ChartEdge[] }) {
  return (
    <ul class="edges">
      {edges.map((edge) => (
        <li key={edge.id}>
          <button type="button" class="link mono" onClick={() => store.setPick({ kind: 'edge', id: edge.id })}>
            {edgeTitle(edge)}
          </button>{' '}
          <span class="quiet">{edge.points.length === 0 ? 'stays' : `→ ${edge.target}`}</span>
        </li>
      ))}
    </ul>
  );
}

interface StateCardProps {
  readonly store: Store;
  readonly chart: Chart;
  readonly node: ChartNode;
  readonly log: readonly LogEntry[];
}

function StateCard({ store, chart, node, log }: StateCardProps) {
  const enters = log.filter(({ record }) => (record.entered ?? record.to).includes(node.id));
  const leads = chart.edges.filter((edge) => edge.source === node.id);
  const comes = chart.edges.filter((edge) => edge.target === node.id && edge.source !== node.id);
  return (
    <section class="picked-card" aria-label={`State ${node.id}`}>
      <CardHead store={store} title={node.id} kind={`${node.initial ? 'initial ' : ''}${node.kind} state`} />
      {node.description && <p>{node.description}</p>}
      <Does what="Runs while active" names={node.invokes} />
      <Does what="On the way in" names={node.entry} words={wordsOf(store)} />
      <Does what="On the way out" names={node.exit} words={wordsOf(store)} />
      {leads.length > 0 && (
        <>
          <h3>Handles</h3>
          <EdgeList store={store} edges={leads} />
        </>
      )}
      {comes.length > 0 && (
        <>
          <h3>Entered by</h3>
          <ul class="edges">
            {comes.map((edge) => (
              <li key={edge.id}>
                <button type="button" class="link mono" onClick={() => store.setPick({ kind: 'edge', id: edge.id })}>
                  {edgeTitle(edge)}
                </button>{' '}
                <span class="quiet">from {edge.source || 'any state'}</span>
              </li>
            ))}
          </ul>
        </>
      )}
      <Times store={store} entries={enters} what="Entered" />
    </section>
  );
}

function EdgeCard({ store, edge, log }: { store: Store; edge: ChartEdge; log: readonly LogEntry[] }) {
  const taken = log.filter(({ record }) => record.edges.includes(edge.id));
  return (
    <section class="picked-card" aria-label={`Transition ${edgeTitle(edge)}`}>
      <CardHead store={store} title={edge.event} kind="transition" />
      <p>
        <StateLink store={store} id={edge.source} />{' '}
        {edge.points.length === 0 ? (
          'handles it and stays in its state'
        ) : (
          <>
            → <StateLink store={store} id={edge.target} />
          </>
        )}
      </p>
      {edge.delayMs !== undefined && <p>After {duration(edge.delayMs)} in the state.</p>}
      {edge.guard !== null && (
        <p>
          Only {guardWords(wordsOf(store), edge.guard)} (<code>{edge.guard}</code>).
        </p>
      )}
      <Does what="Does" names={edge.actions} words={wordsOf(store)} />
      <Times store={store} entries={taken} what="Taken" />
    </section>
  );
}

function StateLink({ store, id }: { readonly store: Store; readonly id: string }) {
  if (id === '') return <span>any state</span>;
  return (
    <button type="button" class="link mono" onClick={() => store.setPick({ kind: 'state', id })}>
      {id}
    </button>
  );
}

function CardHead({ store, title, kind }: { store: Store; title: string; kind: string }) {
  return (
    <header>
      <h2 class="mono">{title}</h2>
      <span class="quiet">{kind}</span>
      <button type="button" class="bare" aria-label="Close" onClick={() => store.setPick(null)}>
        ×
      </button>
    </header>
  );
}

const wordsOf = (store: Store): Words => store.drawings.value?.words ?? noWords;

interface DoesProps {
  readonly what: string;
  readonly names: readonly string[];
  readonly words?: Words;
}

function Does({ what, names, words }: DoesProps) {
  if (names.length === 0) return null;
  const inWords = words && names.map((name) => actionWords(words, name)).join('; ');
  const list = names.join(', ');
  return (
    <p>
      <span class="quiet">{what}:</span> {inWords !== undefined && inWords !== names.join('; ') && `${inWords} `}
      <code>{list}</code>
    </p>
  );
}

/** The last entries of a kind; each leads back to its moment. */
function Times({ store, entries, what }: { store: Store; entries: readonly LogEntry[]; what: string }) {
  return (
    <>
      <h3>
        {what}{' '}
        <span class="quiet">
          {entries.length === 0 ? 'not in the records' : `${entries.length} times in the records`}
        </span>
      </h3>
      <ul class="times">
        {entries.slice(-10).map((entry) => (
          <li key={entry.record.step}>
            <button type="button" class="link mono" onClick={() => store.travel.look(entry)}>
              {timeOfDay(entry.record.at)} #{entry.record.step} {entry.record.event}
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}

function StateTable({ store, chart, actor }: { store: Store; chart: Chart; actor: PanelProps['actor'] }) {
  const statistics = statisticsAt(actor, store.clock.value);
  const shares = heatOf(statistics);
  const { tone, shape } = lookOf(actor);
  return (
    <table class="table">
      <caption class="unseen">States of {chart.name}: visits and time</caption>
      <thead>
        <tr>
          <th scope="col">State</th>
          <th scope="col" class="number">
            Visits
          </th>
          <th scope="col" class="number">
            Time
          </th>
          <th scope="col" class="number">
            %
          </th>
        </tr>
      </thead>
      <tbody>
        {chart.nodes
          .filter((node) => node.parent !== null)
          .map((node) => {
            const isActive = actor.states.includes(node.id);
            const { visits = 0, ms = 0 } = statistics[node.id] ?? {};
            return (
              <tr key={node.id} class={isActive ? 'chosen' : ''}>
                <th scope="row" style={{ 'padding-left': `${8 + (node.id.split('.').length - 1) * 14}px` }}>
                  <button type="button" class="link" onClick={() => store.setPick({ kind: 'state', id: node.id })}>
                    {node.label}
                  </button>
                  {isActive && (
                    <span class={`now ${tone}`}>
                      <Mark tone={tone} shape={shape} /> active
                    </span>
                  )}
                </th>
                <td class="number">{visits === 0 ? '–' : visits}</td>
                <td class="number">{visits === 0 ? '–' : duration(ms)}</td>
                <td class="number">{visits === 0 ? '' : Math.round((shares.get(node.id) ?? 0) * 100)}</td>
              </tr>
            );
          })}
      </tbody>
    </table>
  );
}
