import { useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { boxLines, chartFont as font, pathOf } from '../../inspect/browser.ts';
import type { Chart, ChartEdge, ChartNode, TransitionRecord } from '../../protocol/index.ts';
import type { Actor } from '../state/actors.ts';
import { fullState, lookOf } from '../state/tone.ts';
import { type Camera, fitChart, followStates, type Size, zoomAt } from './camera.ts';

type Mode = 'fit' | 'follow' | 'free';

/** Below this scale of the whole chart its text cannot be read: the active state is followed instead. */
const legible = 0.6;
/** Below this one only the names of states are shown, and larger. */
const far = 0.42;

export function ChartView({ actor, chart }: { readonly actor: Actor; readonly chart: Chart }) {
  const pane = useRef<HTMLDivElement>(null);
  const size = useSignal<Size>({ width: 0, height: 0 });
  const mode = useSignal<Mode>('fit');
  const free = useSignal<Camera>({ x: 0, y: 0, scale: 1 });
  const isDragging = useSignal(false);

  useLayoutEffect(() => {
    const element = pane.current;
    if (!element) return;
    const measure = () => {
      size.value = { width: element.clientWidth, height: element.clientHeight };
    };
    measure();
    if (fitChart(chart, size.value).scale < legible) mode.value = 'follow';
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [chart, size, mode]);

  const camera =
    mode.value === 'fit'
      ? fitChart(chart, size.value)
      : mode.value === 'follow'
        ? followStates(chart, actor.states, size.value)
        : free.value;

  const latest = useRef(camera);
  latest.current = camera;
  const look = (next: Camera) => {
    free.value = next;
    mode.value = 'free';
  };
  const zoom = (factor: number) => look(zoomAt(latest.current, factor, size.value.width / 2, size.value.height / 2));

  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.target instanceof HTMLInputElement) return;
      if (event.key === 'f') mode.value = 'fit';
      else if (event.key === 'o') mode.value = 'follow';
      else if (event.key === '+' || event.key === '=') zoom(1.25);
      else if (event.key === '-') zoom(0.8);
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  });

  const onWheel = (event: WheelEvent) => {
    event.preventDefault();
    const box = pane.current?.getBoundingClientRect();
    if (!box) return;
    const factor = Math.exp(-event.deltaY * (event.deltaMode === 1 ? 0.05 : 0.0015));
    look(zoomAt(latest.current, factor, event.clientX - box.left, event.clientY - box.top));
  };
  const onPointerDown = (event: PointerEvent) => {
    if (event.button !== 0 || !(event.currentTarget instanceof HTMLElement)) return;
    event.currentTarget.setPointerCapture(event.pointerId);
    isDragging.value = true;
  };
  const onPointerMove = (event: PointerEvent) => {
    if (!isDragging.value) return;
    const { x, y, scale } = latest.current;
    look({ scale, x: x + event.movementX, y: y + event.movementY });
  };
  const endDrag = () => {
    isDragging.value = false;
  };

  const move = { transform: `translate(${camera.x}px, ${camera.y}px) scale(${camera.scale})` };
  return (
    <div class="chart">
      <div
        ref={pane}
        class={`pane ${isDragging.value ? 'dragging' : mode.value}`}
        onWheel={onWheel}
        onPointerDown={onPointerDown}
        onPointerMove={onPointerMove}
        onPointerUp={endDrag}
        onPointerCancel={endDrag}
      >
        <svg role="img" aria-label={`Statechart ${chart.name}, active: ${fullState(actor.states)}`}>
          <defs>
            <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
              <path class="arrow" d="M0 .8 7.5 4 0 7.2z" />
            </marker>
            <marker id="arrow-taken" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="5" markerHeight="5" orient="auto">
              <path class="arrow taken" d="M0 .8 7.5 4 0 7.2z" />
            </marker>
          </defs>
          <g class={`scene ${camera.scale < far ? 'far' : ''}`} style={move}>
            <Drawing actor={actor} chart={chart} />
          </g>
        </svg>
      </div>
      <fieldset class="tools" aria-label="View">
        <button type="button" aria-pressed={mode.value === 'follow'} onClick={() => (mode.value = 'follow')}>
          Follow <kbd>o</kbd>
        </button>
        <button type="button" aria-pressed={mode.value === 'fit'} onClick={() => (mode.value = 'fit')}>
          Fit <kbd>f</kbd>
        </button>
        <button type="button" aria-label="Zoom out" onClick={() => zoom(0.8)}>
          −
        </button>
        <output>{Math.round(camera.scale * 100)} %</output>
        <button type="button" aria-label="Zoom in" onClick={() => zoom(1.25)}>
          +
        </button>
      </fieldset>
      <p class="legend">
        <b>{chart.name}</b> {chart.description}{' '}
        <span class="quiet">
          {chart.nodes.length - 1} states, {chart.edges.length} transitions
        </span>
      </p>
      {mode.value !== 'fit' && <Overview chart={chart} actor={actor} camera={camera} size={size.value} look={look} />}
    </div>
  );
}

function Drawing({ actor, chart }: { readonly actor: Actor; readonly chart: Chart }) {
  const active = new Set(actor.states);
  const last = actor.log.at(-1);
  const taken = new Set(last ? edgesTaken(chart, last).map((edge) => edge.id) : []);
  const { tone } = lookOf(actor);
  const isFresh = last !== undefined && Date.now() - last.at.getTime() < 2500;
  const lines = new Map<string, boolean>();
  for (const edge of chart.edges) {
    const d = pathOf(edge.points);
    if (d !== '') lines.set(d, (lines.get(d) ?? false) || taken.has(edge.id));
  }
  return (
    <>
      {chart.nodes.map((node) => (
        <StateBox key={node.id} chart={chart} node={node} tone={active.has(node.id) ? tone : null} />
      ))}
      {[...lines].map(([d, isTaken]) =>
        isTaken ? (
          <path
            key={`${d}${last?.step}`}
            d={d}
            class={`edge taken ${isFresh ? 'fresh' : ''}`}
            marker-end="url(#arrow-taken)"
          />
        ) : (
          <path key={d} d={d} class="edge" marker-end="url(#arrow)" />
        ),
      )}
      {chart.edges.map((edge) => (
        <EdgeLabel key={edge.id} edge={edge} isTaken={taken.has(edge.id)} />
      ))}
    </>
  );
}

interface StateBoxProps {
  readonly chart: Chart;
  readonly node: ChartNode;
  /** How an active state is coloured. */
  readonly tone: string | null;
}

function StateBox({ chart, node, tone }: StateBoxProps) {
  const x = node.x + font.pad;
  const y = node.y + font.pad;
  const isRoot = node.parent === null;
  const place = isRoot ? 'root' : node.parent === '' ? 'outer' : 'inner';
  // The name of the machine stands above the chart; its frame only matters for what it handles in every state.
  const name = isRoot ? (chart.edges.some((edge) => edge.source === '') ? 'in every state' : '') : node.label;
  const classes = ['node', node.kind, place, tone === null ? '' : `active ${tone}`];
  return (
    <g class={classes.join(' ')} data-state={node.id}>
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

function EdgeLabel({ edge, isTaken }: { readonly edge: ChartEdge; readonly isTaken: boolean }) {
  const lines = edge.label.split('\n');
  const { x, y } = edge.labelAt;
  const width = Math.max(...lines.map((line) => line.length)) * font.character + 4;
  const does = edge.actions.length > 0 ? ` / ${edge.actions.join(', ')}` : '';
  return (
    <g class={`label ${isTaken ? 'taken' : ''}`} data-edge={edge.id}>
      <title>{edge.label.replaceAll('\n', ' ') + does}</title>
      {edge.points.length > 0 && (
        <rect class="halo" x={x - 2} y={y} width={width} height={lines.length * font.line} rx="3" />
      )}
      {lines.map((line, index) => (
        <text key={line} class={index === 0 ? 'event' : 'guard'} x={x} y={y + index * font.line + 10.5}>
          {line}
        </text>
      ))}
    </g>
  );
}

/** The arrows that a record may have gone along: same event, source left, target reached, its actions among those run. */
export function edgesTaken(chart: Chart, record: TransitionRecord): ChartEdge[] {
  const candidates = chart.edges.filter(
    (edge) =>
      edge.event === record.event &&
      (edge.source === '' || record.from.includes(edge.source)) &&
      (edge.points.length === 0 || record.to.includes(edge.target)) &&
      edge.actions.every((action) => record.actions.includes(action)),
  );
  // An inner state's transition has precedence over its parent's; more actions in common is the better match.
  const weight = (edge: ChartEdge) => edge.source.length * 100 + edge.target.length * 10 + edge.actions.length;
  const best = Math.max(...candidates.map(weight));
  return candidates.filter((edge) => weight(edge) === best);
}

interface OverviewProps {
  readonly chart: Chart;
  readonly actor: Actor;
  readonly camera: Camera;
  readonly size: Size;
  readonly look: (camera: Camera) => void;
}

/** The whole chart, small, with a frame around what the pane shows. A click moves there. */
function Overview({ chart, actor, camera, size, look }: OverviewProps) {
  const active = new Set(actor.states);
  const { tone } = lookOf(actor);
  const onClick = (event: MouseEvent) => {
    if (!(event.currentTarget instanceof SVGElement)) return;
    const box = event.currentTarget.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * chart.width;
    const y = ((event.clientY - box.top) / box.height) * chart.height;
    look({ scale: camera.scale, x: size.width / 2 - x * camera.scale, y: size.height / 2 - y * camera.scale });
  };
  return (
    <svg class="overview" viewBox={`0 0 ${chart.width} ${chart.height}`} aria-hidden="true" onClick={onClick}>
      {chart.nodes
        .filter((node) => node.parent !== null)
        .map((node) => (
          <rect
            key={node.id}
            class={active.has(node.id) ? `active ${tone}` : ''}
            x={node.x}
            y={node.y}
            width={node.width}
            height={node.height}
            rx="10"
          />
        ))}
      <rect
        class="frame"
        x={-camera.x / camera.scale}
        y={-camera.y / camera.scale}
        width={size.width / camera.scale}
        height={size.height / camera.scale}
      />
    </svg>
  );
}
