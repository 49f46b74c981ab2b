import { type Signal, useSignal } from '@preact/signals';
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { type Drawings, grid, noWords, type SizeClass, sceneOf, sizeClasses } from '../../../inspect/browser.ts';
import { messageOf } from '../../../lib/browser.ts';
import type { Chart } from '../../../protocol/index.ts';
import { fullState } from '../../parts/tone.ts';
import { type Camera, fitChart, type Size, zoomAt } from './camera.ts';
import { Drawing } from './drawing.tsx';
import type { Actor } from './model.ts';
import { PossibleList } from './possible.tsx';
import { SimulationBanner, SimulationPanel } from './simulation/panel.tsx';
import { copyOf } from './simulation/session.ts';
import type { Store } from './store.ts';
import { useCommands } from './use-commands.ts';
import { useFocusInsteadOf } from './use-focus.ts';

/** A press that moves further than this drags the chart instead of clicking. In CSS pixels. */
const dragSlack = 4;

interface ChartProps {
  readonly store: Store;
  readonly actor: Actor;
  readonly chart: Chart;
}

/** Live chart of an actor's machine: active states are lit, the path taken is bold; the possible events are a drawer. */
export function ChartView({ store, actor: real, chart }: ChartProps) {
  const simulated = store.simulation.simulated.value;
  const actor = simulated ? copyOf(simulated) : real;
  const pane = useRef<HTMLDivElement>(null);
  const size = useSize(pane);
  const isAll = useSignal(false);
  /** Undefined: the whole drawing is fitted into the pane. */
  const free = useSignal<Camera | undefined>(undefined);
  const isListed = useSignal(false);

  const drawings = store.drawings.value;
  const isWhole = isAll.value || drawings === null;
  const sizeClass = drawings ? classFor(drawings, size.value) : undefined;
  const picture = isWhole || !sizeClass ? undefined : drawings?.pictures[sizeClass];
  const scene = useMemo(() => sceneOf(chart, picture), [chart, picture]);
  const camera = free.value ?? fitChart(scene, size.value);
  const latest = useRef(camera);
  latest.current = camera;
  const look = (next: Camera) => {
    free.value = next;
  };
  const zoom = (factor: number) => look(zoomAt(latest.current, factor, size.value.width / 2, size.value.height / 2));
  const fit = () => {
    free.value = undefined;
  };
  const toggleAll = () => {
    isAll.value = !isAll.peek();
    fit();
  };
  const toggleList = () => {
    isListed.value = !isListed.peek();
  };
  const pan = (x: number, y: number) => look({ ...latest.current, x: latest.current.x + x, y: latest.current.y + y });
  useChartCommands(store, { zoom, fit, pan, toggleAll, toggleList });
  const { isDragging, ...gestures } = useGestures(pane, latest, look, (target) => pickAt(store, target));

  const move = { transform: `translate(${camera.x}px, ${camera.y}px) scale(${camera.scale})` };
  // Not before its place is known: an animation would move it there.
  const isPlaced = size.value.width > 0 && (isWhole || picture !== undefined);
  const words = drawings?.words ?? noWords;
  return (
    <figure class="chart" aria-label={`Statechart ${chart.name}`}>
      <Tools
        store={store}
        isFitted={free.value === undefined}
        fit={fit}
        isAll={isWhole}
        toggleAll={drawings === null ? undefined : toggleAll}
        isListed={isListed.value}
        toggleList={simulated ? undefined : toggleList}
        zoom={zoom}
        scale={camera.scale}
        simulate={simulateOf(store, real)}
      />
      {simulated && <SimulationBanner store={store} />}
      <div class="drawn-and-next">
        <div ref={pane} class={`pane ${isDragging ? 'dragging' : free.value ? '' : 'fit'}`} {...gestures}>
          <svg role="img" aria-label={`Statechart ${chart.name}. Active: ${fullState(actor.states)}.`}>
            <Arrows />
            <g key={`${isPlaced} ${isWhole}`} class={`scene ${isWhole ? 'whole' : ''}`} style={move}>
              {isPlaced && (
                <Drawing
                  store={store}
                  actor={actor}
                  chart={chart}
                  scene={scene}
                  words={words}
                  isWide={sizeClass === 'wide'}
                />
              )}
            </g>
          </svg>
        </div>
        {simulated ? (
          <SimulationPanel session={store.simulation} simulated={simulated} words={words} />
        ) : (
          <PossibleList store={store} chart={chart} actor={actor} words={words} isOpen={isListed.value} />
        )}
      </div>
    </figure>
  );
}

/** The largest drawing whose text is legible in a pane; without one that of the largest scale. */
function classFor({ pictures }: Drawings, pane: Size): SizeClass | undefined {
  const scaleOf = (size: SizeClass) =>
    Math.min(pane.width / (pictures[size].width * grid), pane.height / (pictures[size].height * grid));
  return (
    sizeClasses.find((size) => scaleOf(size) >= 1) ?? [...sizeClasses].sort((a, b) => scaleOf(b) - scaleOf(a)).at(0)
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

/** Starts a simulation of an actor; undefined if its machine is unknown or a simulation is running. */
function simulateOf(store: Store, actor: Actor): (() => void) | undefined {
  const { simulation } = store;
  const copy = store.copy.value;
  if (!copy || simulation.simulated.value) return undefined;
  return () => {
    simulation.start(actor, copy).catch((error: unknown) => {
      store.app.toast({ text: `The simulation cannot begin: ${messageOf(error)}`, tone: 'danger' });
    });
  };
}

/** Selects the pressed state or line; a press elsewhere clears the selection. */
function pickAt(store: Store, target: EventTarget | null): void {
  const element = target instanceof Element ? target.closest('[data-pick], [data-state], [data-frame]') : null;
  const edge = element?.getAttribute('data-pick');
  const state = element?.getAttribute('data-state') ?? element?.getAttribute('data-frame');
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

interface View {
  readonly zoom: (factor: number) => void;
  readonly fit: () => void;
  readonly pan: (x: number, y: number) => void;
  readonly toggleAll: () => void;
  readonly toggleList: () => void;
}

function useChartCommands(store: Store, { zoom, fit, pan, toggleAll, toggleList }: View): void {
  const chart = (id: string, title: string, keys: readonly string[], run: () => void) => ({
    id: `actors.${id}`,
    title,
    group: 'Statechart',
    keys,
    run,
  });
  useCommands(store.app, [
    chart('fit', 'Show the whole chart', ['f'], fit),
    chart('all', 'Switch between all labels and the drawing', ['z'], toggleAll),
    chart('possible', 'Show possible events', ['o'], toggleList),
    chart('zoomIn', 'Zoom in', ['+', '='], () => zoom(1.25)),
    chart('zoomOut', 'Zoom out', ['-'], () => zoom(0.8)),
    chart('panLeft', 'Pan the chart right', ['a'], () => pan(80, 0)),
    chart('panRight', 'Pan the chart left', ['d'], () => pan(-80, 0)),
    chart('panUp', 'Pan the chart down', ['w'], () => pan(0, 80)),
    chart('panDown', 'Pan the chart up', ['s'], () => pan(0, -80)),
    chart('heat', 'Colour states by the time spent in them', ['Shift+H'], () => store.toggleHeat()),
  ]);
}

interface ToolsProps {
  readonly store: Store;
  readonly isFitted: boolean;
  readonly fit: () => void;
  readonly isAll: boolean;
  /** Undefined: there is only the whole chart. */
  readonly toggleAll: (() => void) | undefined;
  readonly isListed: boolean;
  /** Undefined: the list has no place beside a simulation. */
  readonly toggleList: (() => void) | undefined;
  readonly zoom: (factor: number) => void;
  readonly scale: number;
  readonly simulate: (() => void) | undefined;
}

function Tools({ store, isFitted, fit, isAll, toggleAll, isListed, toggleList, zoom, scale, simulate }: ToolsProps) {
  const start = useRef<HTMLButtonElement>(null);
  useFocusInsteadOf(start, store.simulation.simulated.value === null);
  return (
    <fieldset class="tools" aria-label="View">
      {simulate && (
        <button
          ref={start}
          type="button"
          class="simulate"
          title="Step a copy: the actor is not touched"
          onClick={simulate}
        >
          Simulate from here
        </button>
      )}
      {toggleList && (
        <button type="button" aria-expanded={isListed} title="Possible events (o)" onClick={toggleList}>
          Next
        </button>
      )}
      <button
        type="button"
        aria-pressed={store.showsHeat.value}
        title="Colour by time (Shift+H)"
        onClick={() => store.toggleHeat()}
      >
        Heat
      </button>
      {toggleAll && (
        <button type="button" aria-pressed={isAll} title="All labels (z)" onClick={toggleAll}>
          All
        </button>
      )}
      <button type="button" aria-pressed={isFitted} title="The whole drawing (f)" onClick={fit}>
        Fit
      </button>
      <button type="button" aria-label="Zoom out" onClick={() => zoom(0.8)}>
        −
      </button>
      <output>{Math.round(scale * 100)} %</output>
      <button type="button" aria-label="Zoom in" onClick={() => zoom(1.25)}>
        +
      </button>
    </fieldset>
  );
}

function Arrows() {
  return (
    <defs>
      {['', '-spine', '-path'].map((kind) => (
        <marker
          key={kind}
          id={`arrow${kind}`}
          viewBox="0 0 8 8"
          refX="7"
          refY="4"
          markerWidth="8"
          markerHeight="8"
          markerUnits="userSpaceOnUse"
          orient="auto"
        >
          <path class={`arrow ${kind.slice(1)}`} d="M0 .8 7.5 4 0 7.2z" />
        </marker>
      ))}
    </defs>
  );
}
