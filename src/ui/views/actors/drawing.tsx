import { useEffect, useReducer, useRef } from 'preact/hooks';
import { boxLines, chartFont as font, pathOf } from '../../../inspect/browser.ts';
import type { Chart, ChartEdge, ChartNode } from '../../../protocol/index.ts';
import { lookOf } from '../../parts/tone.ts';
import type { Actor } from './model.ts';
import { Count } from './state-count.tsx';
import { heatOf, statisticsAt } from './statistics.ts';
import type { Store } from './store.ts';

/** Time for which a taken edge is thick. */
const flashMs = 1_500;

interface DrawingProps {
  readonly store: Store;
  readonly actor: Actor;
  readonly chart: Chart;
}

/** The whole chart: every state open, every word on its arrow. */
export function Drawing({ store, actor, chart }: DrawingProps) {
  const active = new Set(actor.states);
  const last = actor.log.at(-1);
  const taken = new Set(last?.record.edges);
  const flashes = useFlashes(store, actor);
  const { tone } = lookOf(actor);
  const { counts, heat } = store.shows.value;
  const statistics = counts || heat ? statisticsAt(actor, store.clock.value) : {};
  const shares = heat ? heatOf(statistics) : undefined;
  const pick = store.pick.value;
  const picked = (kind: 'state' | 'edge', id: string) => pick?.kind === kind && pick.id === id;
  return (
    <>
      {chart.nodes.map((node) => (
        <StateBox
          key={node.id}
          chart={chart}
          node={node}
          tone={active.has(node.id) ? tone : null}
          heat={shares?.get(node.id)}
          isPicked={picked('state', node.id)}
        />
      ))}
      <Lines chart={chart} taken={taken} flashes={flashes} pickedId={pick?.kind === 'edge' ? pick.id : null} />
      {chart.edges.map((edge) => (
        <EdgeLabel
          key={edge.id}
          edge={edge}
          isTaken={taken.has(edge.id)}
          isFresh={flashes.has(edge.id)}
          isPicked={picked('edge', edge.id)}
        />
      ))}
      {counts && chart.nodes.map((node) => <Count key={node.id} id={node.id} box={node} statistics={statistics} />)}
    </>
  );
}

/**
 * Edges that flash now, because a transition took them a moment ago, or because the selected step took them. The number of the
 * record distinguishes a flash from the one before.
 */
export function useFlashes(store: Store, actor: Actor): ReadonlyMap<string, number> {
  const [, redraw] = useReducer((count: number, _: undefined) => count + 1, 0);
  const seen = useRef({ n: -1, at: 0 });
  const now = Date.now();
  const isPast = store.travel.moment.value !== null;
  const last = actor.log.at(-1);
  if (isPast && last && last.n !== seen.current.n) seen.current = { n: last.n, at: now };
  const flashes = new Map<string, number>();
  let next = Number.POSITIVE_INFINITY;
  for (let index = actor.log.length - 1; index >= 0; index -= 1) {
    const entry = actor.log[index];
    if (!entry) break;
    const left = (isPast ? (entry.n === seen.current.n ? seen.current.at : 0) : entry.heardAt) + flashMs - now;
    if (left <= 0) break;
    next = Math.min(next, left);
    for (const edge of entry.record.edges) if (!flashes.has(edge)) flashes.set(edge, entry.n);
  }
  useEffect(() => {
    if (!Number.isFinite(next)) return;
    const timer = setTimeout(redraw, next, undefined);
    return () => clearTimeout(timer);
  });
  return flashes;
}

interface LinesProps {
  readonly chart: Chart;
  readonly taken: ReadonlySet<string>;
  readonly flashes: ReadonlyMap<string, number>;
  readonly pickedId: string | null;
}

/** Transitions between the same two states share one line. */
function Lines({ chart, taken, flashes, pickedId }: LinesProps) {
  const lines = new Map<string, ChartEdge[]>();
  for (const edge of chart.edges) {
    const d = pathOf(edge.points);
    if (d !== '') lines.set(d, [...(lines.get(d) ?? []), edge]);
  }
  return (
    <>
      {[...lines].map(([d, edges]) => {
        const isTaken = edges.some(({ id }) => taken.has(id));
        const flash = edges.map(({ id }) => flashes.get(id)).find((n) => n !== undefined);
        const isPicked = edges.some(({ id }) => id === pickedId);
        const classes = ['edge', isTaken && 'taken', flash !== undefined && 'fresh', isPicked && 'picked'];
        return (
          <g key={d} data-edge={edges[0]?.id}>
            <path class="reach" d={d} />
            <path
              // Each flash is a new element, so that its animation restarts.
              key={flash ?? 'still'}
              d={d}
              class={classes.filter(Boolean).join(' ')}
              marker-end={`url(#arrow${flash !== undefined ? '-fresh' : isTaken ? '-taken' : ''})`}
            />
          </g>
        );
      })}
    </>
  );
}

interface StateBoxProps {
  readonly chart: Chart;
  readonly node: ChartNode;
  /** Colour of an active state. */
  readonly tone: string | null;
  /** Share of the time, 0 to 1; undefined: not shown. */
  readonly heat: number | undefined;
  readonly isPicked: boolean;
}

function StateBox({ chart, node, tone, heat, isPicked }: StateBoxProps) {
  const x = node.x + font.pad;
  const y = node.y + font.pad;
  const isRoot = node.parent === null;
  const place = isRoot ? 'root' : node.parent === '' ? 'outer' : 'inner';
  // The chart's heading names the machine; its frame only matters for the events that it handles in every state.
  const name = isRoot ? (chart.edges.some((edge) => edge.source === '') ? 'in every state' : '') : node.label;
  const classes = ['node', node.kind, place, tone !== null && `active ${tone}`, isPicked && 'picked', heat && 'heat'];
  return (
    <g
      class={classes.filter(Boolean).join(' ')}
      data-state={node.id}
      style={heat ? { '--heat': `${Math.round(10 + heat * 65)}%` } : undefined}
    >
      <title>{node.description || node.label}</title>
      <rect class="box" x={node.x} y={node.y} width={node.width} height={node.height} rx="7" />
      {node.initial && <circle class="start" cx={x + 3} cy={y + 8} r="3.5" />}
      <text class="name" x={x + (node.initial ? 12 : 0)} y={y + 12.5}>
        {name}
      </text>
      {boxLines(node).map((line, index) => (
        <text key={line} class="line" x={x} y={y + font.title + index * font.line + 10}>
          {line}
        </text>
      ))}
    </g>
  );
}

interface EdgeLabelProps {
  readonly edge: ChartEdge;
  readonly isTaken: boolean;
  readonly isFresh: boolean;
  readonly isPicked: boolean;
}

function EdgeLabel({ edge, isTaken, isFresh, isPicked }: EdgeLabelProps) {
  const lines = edge.label.split('\n');
  const { x, y } = edge.labelAt;
  const width = Math.max(...lines.map((line) => line.length)) * font.character + 4;
  const classes = ['label', isTaken && 'taken', isFresh && 'fresh', isPicked && 'picked'];
  return (
    <g class={classes.filter(Boolean).join(' ')} data-edge={edge.id}>
      <title>{edge.label.replaceAll('\n', ' ')}</title>
      <rect
        class={edge.points.length > 0 ? 'halo' : 'reach'}
        x={x - 2}
        y={y}
        width={width}
        height={lines.length * font.line}
        rx="3"
      />
      {lines.map((line, index) => (
        <text key={line} class={index === 0 ? 'event' : 'guard'} x={x} y={y + index * font.line + 10.5}>
          {line}
        </text>
      ))}
    </g>
  );
}
