import { type Signal, useSignal } from '@preact/signals';
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import {
  type Detail,
  type Drawings,
  detailFont,
  detailOf,
  legible as legiblePx,
  noWords,
  type Picture,
} from '../../../inspect/browser.ts';
import { messageOf } from '../../../lib/browser.ts';
import type { Chart } from '../../../protocol/index.ts';
import { fullState } from '../../parts/tone.ts';
import { type Camera, fitChart, followStates, type Size, zoomAt } from './camera.ts';
import { DetailDrawing } from './detail.tsx';
import { Drawing } from './drawing.tsx';
import { focusOf } from './drawings.ts';
import { Minimap } from './minimap.tsx';
import type { Actor } from './model.ts';
import { PossibleList } from './possible.tsx';
import { SimulationBanner, SimulationPanel } from './simulation/panel.tsx';
import { copyOf } from './simulation/session.ts';
import { possibleEvents } from './states.ts';
import type { Store } from './store.ts';
import { useCommands } from './use-commands.ts';
import { useFocusInsteadOf } from './use-focus.ts';

type Mode = 'fit' | 'follow' | 'free';

/** Below this scale of the whole chart its text cannot be read: the active state is followed instead. */
const legible = 0.6;
/** Below this scale only the names of states are shown, in a larger font. */
const far = 0.42;
/** A press that moves further than this drags the chart instead of clicking. In CSS pixels. */
const dragSlack = 4;

interface ChartProps {
  readonly store: Store;
  readonly actor: Actor;
  readonly chart: Chart;
}

/** Live chart of an actor's machine: active states are lit, taken transitions flash; possible events are listed below. */
export function ChartView({ store, actor: real, chart }: ChartProps) {
  const simulated = store.simulation.simulated.value;
  const actor = simulated ? copyOf(simulated) : real;
  const pane = useRef<HTMLDivElement>(null);
  const size = useSize(pane);
  const mode = useSignal<Mode>('fit');
  const isAll = useSignal(false);
  const free = useSignal<Camera>({ x: 0, y: 0, scale: 1 });

  const drawings = store.drawings.value;
  const isWhole = isAll.value || drawings === null;
  const pick = store.pick.value;
  const focus = focusOf(chart, actor.states, pick);
  const view = useView(isWhole ? null : drawings, chart, focus, size.value);
  const extent = isWhole ? chart : view?.picture;
  const camera = cameraOf(mode.value, isWhole, chart, extent ?? chart, actor, size.value, free.value);
  const latest = useRef(camera);
  latest.current = camera;
  const look = (next: Camera) => {
    free.value = next;
    mode.value = 'free';
  };
  const zoom = (factor: number) => look(zoomAt(latest.current, factor, size.value.width / 2, size.value.height / 2));
  const setMode = (next: Mode) => {
    if (next === 'follow' && !isWhole && store.pick.peek()?.kind === 'state') store.setPick(null);
    mode.value = next;
  };
  const toggleAll = () => {
    isAll.value = !isAll.peek();
    mode.value = isAll.peek() && fitChart(chart, size.peek()).scale < legible ? 'follow' : 'fit';
  };
  const pan = (x: number, y: number) => look({ ...latest.current, x: latest.current.x + x, y: latest.current.y + y });
  useChartCommands(store, zoom, setMode, pan, toggleAll);
  const { isDragging, ...gestures } = useGestures(pane, latest, look, (target) => pickAt(store, target));

  const move = { transform: `translate(${camera.x}px, ${camera.y}px) scale(${camera.scale})` };
  const events = possibleEvents(chart, actor.states);
  const isNow = actor.states.includes(focus);
  // Not before its place is known: an animation would move it there.
  const isPlaced = size.value.width > 0 && extent !== undefined;
  return (
    <figure class="chart">
      <Tools
        store={store}
        mode={mode.value}
        setMode={setMode}
        isFollowing={isWhole ? mode.value === 'follow' : pick?.kind !== 'state'}
        isAll={isWhole}
        toggleAll={drawings === null ? undefined : toggleAll}
        zoom={zoom}
        scale={camera.scale}
        simulate={simulateOf(store, real)}
      />
      {simulated && <SimulationBanner store={store} />}
      <div class="drawn-and-next">
        <div ref={pane} class={`pane ${isDragging ? 'dragging' : mode.value}`} {...gestures}>
          <svg
            role="img"
            aria-label={`Statechart ${chart.name}. Active: ${fullState(actor.states)}. Possible events: ${events.join(', ') || 'none'}.`}
          >
            <Arrows />
            <g
              key={`${isPlaced} ${isWhole}`}
              class={`scene ${isWhole ? (camera.scale < far ? 'far' : '') : 'detail'}`}
              style={move}
            >
              {isPlaced && isWhole && <Drawing store={store} actor={actor} chart={chart} />}
              {isPlaced && view && <DetailDrawing store={store} actor={actor} chart={chart} focus={focus} {...view} />}
            </g>
          </svg>
          {isWhole && mode.value !== 'fit' && (
            <Minimap chart={chart} actor={actor} camera={camera} size={size.value} look={look} />
          )}
        </div>
        {simulated ? (
          <SimulationPanel session={store.simulation} simulated={simulated} words={drawings?.words ?? noWords} />
        ) : (
          <PossibleList
            store={store}
            chart={chart}
            words={drawings?.words ?? noWords}
            focus={focus}
            isNow={isNow}
            hasEnded={actor.ending !== null}
            isNumbered={view !== undefined && view.picture.level >= 3 && view.picture.level < 8}
          />
        )}
      </div>
      <p class="legend">
        <b>{chart.name}</b> {chart.description}{' '}
        <span class="quiet">
          {chart.nodes.length - 1} states, {chart.edges.length} transitions
        </span>
      </p>
    </figure>
  );
}

/** Current size of an element, in CSS pixels. */
function useSize(pane: { readonly current: HTMLDivElement | null }): Signal<Size> {
  const size = useSignal<Size>({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const element = pane.current;
    if (!element) return;
    const measure = () => {
      size.value = { width: element.clientWidth, height: element.clientHeight };
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [size]);
  return size;
}

/** Begins a simulation of an actor; undefined where its machine is not that of this page, or one runs. */
function simulateOf(store: Store, actor: Actor): (() => void) | undefined {
  const { drawings, simulation } = store;
  const made = drawings.value;
  if (!made || simulation.simulated.value) return undefined;
  return () => {
    simulation.start(actor, made.facts).catch((error: unknown) => {
      store.app.toast({ text: `The simulation cannot begin: ${messageOf(error)}`, tone: 'danger' });
    });
  };
}

interface View {
  readonly detail: Detail;
  readonly picture: Picture;
}

/** The drawing around a focus that is legible in a pane of this size. */
function useView(drawings: Drawings | null | undefined, chart: Chart, focus: string, size: Size): View | undefined {
  const pictures = drawings?.pictures[focus];
  const isLegible = (picture: Picture) => fitChart(picture, size).scale * detailFont.words >= legiblePx;
  const pane = pictures && isLegible(pictures.desktop) ? 'desktop' : 'phone';
  const picture = pictures?.[pane];
  const graph = useMemo(
    () => ({ ...chart, edges: chart.edges.map((edge) => ({ ...edge, internal: edge.points.length === 0 })) }),
    [chart],
  );
  return useMemo(
    () =>
      drawings && picture
        ? { picture, detail: detailOf(graph, drawings.words, focus, picture.level, pane) }
        : undefined,
    [graph, drawings, picture, focus, pane],
  );
}

function cameraOf(
  mode: Mode,
  isWhole: boolean,
  chart: Chart,
  extent: Size,
  actor: Actor,
  size: Size,
  free: Camera,
): Camera {
  if (mode === 'free') return free;
  return isWhole && mode === 'follow' ? followStates(chart, actor.states, size) : fitChart(extent, size);
}

/** Selects the pressed state or arrow; a press elsewhere clears the selection. */
function pickAt(store: Store, target: EventTarget | null): void {
  const element = target instanceof Element ? target.closest('[data-edge], [data-state]') : null;
  const edge = element?.getAttribute('data-edge');
  const state = element?.getAttribute('data-stands') ?? element?.getAttribute('data-state');
  if (edge != null) store.setPick({ kind: 'edge', id: edge });
  else if (state != null && state !== '') store.setPick({ kind: 'state', id: state });
  else store.setPick(null);
}

function useGestures(
  pane: { readonly current: HTMLDivElement | null },
  latest: { readonly current: Camera },
  look: (camera: Camera) => void,
  press: (target: EventTarget | null) => void,
) {
  const isDragging = useSignal(false);
  const start = useRef<{ readonly x: number; readonly y: number; readonly target: EventTarget | null } | null>(null);
  const end = () => {
    isDragging.value = false;
    start.current = null;
  };
  return {
    isDragging: isDragging.value,
    onWheel: (event: WheelEvent) => {
      event.preventDefault();
      const box = pane.current?.getBoundingClientRect();
      if (!box) return;
      const factor = Math.exp(-event.deltaY * (event.deltaMode === 1 ? 0.05 : 0.0015));
      look(zoomAt(latest.current, factor, event.clientX - box.left, event.clientY - box.top));
    },
    onPointerDown: (event: PointerEvent) => {
      if (event.button === 0) start.current = { x: event.clientX, y: event.clientY, target: event.target };
    },
    onPointerMove: (event: PointerEvent) => {
      if (!start.current) return;
      const { x, y, scale } = latest.current;
      if (!isDragging.value) {
        if (Math.hypot(event.clientX - start.current.x, event.clientY - start.current.y) < dragSlack) return;
        pane.current?.setPointerCapture(event.pointerId);
        isDragging.value = true;
      }
      look({ scale, x: x + event.movementX, y: y + event.movementY });
    },
    onPointerUp: () => {
      if (start.current && !isDragging.value) press(start.current.target);
      end();
    },
    onPointerCancel: end,
    onPointerLeave: () => {
      if (!isDragging.value) start.current = null;
    },
  };
}

function useChartCommands(
  store: Store,
  zoom: (factor: number) => void,
  setMode: (mode: Mode) => void,
  pan: (x: number, y: number) => void,
  toggleAll: () => void,
): void {
  const chart = (id: string, title: string, keys: readonly string[], run: () => void) => ({
    id: `actors.${id}`,
    title,
    group: 'Statechart',
    keys,
    run,
  });
  useCommands(store.app, [
    chart('fit', 'Show the whole chart', ['f'], () => setMode('fit')),
    chart('all', 'Show every state of the chart, or only near ones', ['z'], toggleAll),
    chart('follow', 'Follow the active state', ['o'], () => setMode('follow')),
    chart('zoomIn', 'Zoom in', ['+', '='], () => zoom(1.25)),
    chart('zoomOut', 'Zoom out', ['-'], () => zoom(0.8)),
    chart('panLeft', 'Pan the chart right', ['a'], () => pan(80, 0)),
    chart('panRight', 'Pan the chart left', ['d'], () => pan(-80, 0)),
    chart('panUp', 'Pan the chart down', ['w'], () => pan(0, 80)),
    chart('panDown', 'Pan the chart up', ['s'], () => pan(0, -80)),
    chart('counts', 'Show visits and time of each state', ['c'], () => store.toggle('counts')),
    chart('heat', 'Colour states by the time spent in them', ['h'], () => store.toggle('heat')),
  ]);
}

interface ToolsProps {
  readonly store: Store;
  readonly mode: Mode;
  readonly setMode: (mode: Mode) => void;
  readonly isFollowing: boolean;
  readonly isAll: boolean;
  /** Undefined: there is only the whole chart. */
  readonly toggleAll: (() => void) | undefined;
  readonly zoom: (factor: number) => void;
  readonly scale: number;
  readonly simulate: (() => void) | undefined;
}

function Tools({ store, mode, setMode, isFollowing, isAll, toggleAll, zoom, scale, simulate }: ToolsProps) {
  const { counts, heat } = store.shows.value;
  const start = useRef<HTMLButtonElement>(null);
  useFocusInsteadOf(start, store.simulation.simulated.value === null);
  return (
    <fieldset class="tools" aria-label="View">
      {simulate && (
        <button
          ref={start}
          type="button"
          class="simulate"
          title="Step a copy of it: the actor is not touched"
          onClick={simulate}
        >
          Simulate from here
        </button>
      )}
      <button
        type="button"
        aria-pressed={counts}
        title="Visits and time of each state"
        onClick={() => store.toggle('counts')}
      >
        Counts <kbd>c</kbd>
      </button>
      <button type="button" aria-pressed={heat} title="Colour by time" onClick={() => store.toggle('heat')}>
        Heat <kbd>h</kbd>
      </button>
      {toggleAll && (
        <button type="button" aria-pressed={isAll} title="Every state, every word" onClick={toggleAll}>
          All <kbd>z</kbd>
        </button>
      )}
      <button type="button" aria-pressed={isFollowing} onClick={() => setMode('follow')}>
        Follow <kbd>o</kbd>
      </button>
      <button type="button" aria-pressed={mode === 'fit'} onClick={() => setMode('fit')}>
        Fit <kbd>f</kbd>
      </button>
      <span class="zoom">
        <button type="button" aria-label="Zoom out" onClick={() => zoom(0.8)}>
          −
        </button>
        <output>{Math.round(scale * 100)} %</output>
        <button type="button" aria-label="Zoom in" onClick={() => zoom(1.25)}>
          +
        </button>
      </span>
    </fieldset>
  );
}

function Arrows() {
  return (
    <defs>
      <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
        <path class="arrow" d="M0 .8 7.5 4 0 7.2z" />
      </marker>
      <marker id="arrow-taken" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="5" markerHeight="5" orient="auto">
        <path class="arrow taken" d="M0 .8 7.5 4 0 7.2z" />
      </marker>
      <marker id="arrow-fresh" viewBox="0 0 8 8" refX="5" refY="4" markerWidth="2.6" markerHeight="2.6" orient="auto">
        <path class="arrow taken" d="M0 .8 7.5 4 0 7.2z" />
      </marker>
    </defs>
  );
}
