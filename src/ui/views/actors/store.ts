import { batch, computed, effect, type ReadonlySignal, type Signal, signal } from '@preact/signals';
import type { Drawings } from '../../../inspect/browser.ts';
import { messageOf } from '../../../lib/browser.ts';
import type { Chart } from '../../../protocol/index.ts';
import type { App } from '../../app/app.ts';
import type { Action } from '../../parts/workspace-acts.ts';
import { createFeed } from './feed.ts';
import { type ActorsLink, followLink, type Picked, type Tab } from './link.ts';
import type { Actor, Actors } from './model.ts';
import { actorsOf, type Recording, readRecording, recordsOf, writeRecording } from './recording.ts';
import { createSimulation, type SimulationSession } from './simulation/session.ts';
import type { ActorSource, CreateSource, MachineCopy } from './source.ts';
import { createTravel, type Travel } from './travel.ts';
import { type Counts, countsOf, everything, type Filter, type Openings, type TreeRow, TreeRows } from './tree-rows.ts';

/** Command that the Hub has not answered yet, and its actor. */
interface Running {
  readonly id: string;
  readonly action: Action;
}

/** Something opened from a file: it is shown in place of the server's actors. */
export interface Opened {
  readonly name: string;
  readonly recording: Recording;
  readonly actors: Actors;
}

/** State of this view, and the actions of its user. */
export interface Store {
  readonly app: App;
  readonly travel: Travel;
  readonly charts: ReadonlySignal<ReadonlyMap<string, Chart>>;
  readonly isLoaded: ReadonlySignal<boolean>;
  /** Actors of the server now, also when another moment is selected. */
  readonly live: ReadonlySignal<Actors>;
  readonly rows: ReadonlySignal<readonly TreeRow[]>;
  readonly counts: ReadonlySignal<Counts>;
  readonly filter: ReadonlySignal<Filter>;
  readonly selectedId: ReadonlySignal<string | null>;
  /** Selected actor at the selected moment; null: it did not exist then, or nothing exists. */
  readonly selected: ReadonlySignal<Actor | null>;
  /** Selected actor with its whole log. */
  readonly whole: ReadonlySignal<Actor | null>;
  readonly chart: ReadonlySignal<Chart | undefined>;
  /** Whether the chart of a machine may still arrive. */
  isPending(machine: string): boolean;
  /** Selected machine for a simulation; undefined if it is unknown. */
  readonly copy: ReadonlySignal<MachineCopy | undefined>;
  /** See `ActorSource`. Absent: facts are complete. */
  readonly WholeFact: ActorSource['WholeFact'];
  readonly simulation: SimulationSession;
  /** Drawings of the chart; undefined: not fetched yet, null: missing for this chart. */
  readonly drawings: ReadonlySignal<Drawings | null | undefined>;
  readonly tab: ReadonlySignal<Tab>;
  readonly pick: ReadonlySignal<Picked | null>;
  /** The page asks whether the selected actor shall be stopped. */
  readonly asksToStop: ReadonlySignal<boolean>;
  readonly opened: ReadonlySignal<Opened | null>;
  readonly busy: ReadonlySignal<Running | null>;
  readonly notice: ReadonlySignal<string | null>;
  /** Milliseconds since the epoch: now, the selected moment, or the time of the recording. */
  readonly clock: ReadonlySignal<number>;
  /** The chart colours states by their time. */
  readonly showsHeat: ReadonlySignal<boolean>;
  /** Steps to compare; null: the last one before. */
  readonly compared: ReadonlySignal<{ readonly a: number | null; readonly b: number | null }>;
  select(id: string): void;
  setFilter(change: Partial<Filter>): void;
  setTab(tab: Tab): void;
  askToStop(asks: boolean): void;
  setPick(pick: Picked | null): void;
  setOpen(id: string, isOpen: boolean): void;
  toggleHeat(): void;
  compare(change: { readonly a?: number | null; readonly b?: number | null }): void;
  dismiss(): void;
  act(action: Action, id: string, workspacePath: string): Promise<void>;
  /** Text of a recording of all stored records. */
  record(): string;
  open(file: File): Promise<void>;
  closeRecording(): void;
  close(): void;
}

/** Props of a panel. */
export interface PanelProps {
  readonly store: Store;
  /** The actor at the selected moment. */
  readonly actor: Actor;
  /** The actor with its whole log. */
  readonly whole: Actor;
}

/** @param link place where the selections are stored; default: the address */
export function createStore(app: App, createSource: CreateSource, link: ActorsLink = followLink(app.router)): Store {
  const feed = createFeed(app.live, link.only);
  const opened = signal<Opened | null>(null);
  const busy = signal<Running | null>(null);
  const notice = signal<string | null>(null);
  const source = createSource(app, feed.isLoaded, notice);
  const openings = signal<Openings>(new Map());
  const showsHeat = signal(false);
  const compared = signal<{ readonly a: number | null; readonly b: number | null }>({ a: null, b: null });

  const present = computed(() => opened.value?.actors ?? feed.actors.value);
  const selectedId = computed(() => link.actor.value ?? firstOf(present.value));
  const travel = createTravel({ present, selectedId });
  const charts = computed(() =>
    opened.value ? new Map(opened.value.recording.charts.map((chart) => [chart.name, chart])) : source.charts.value,
  );
  const isLoaded = computed(() => opened.value !== null || feed.isLoaded.value);
  const of = (actors: Actors) => (selectedId.value === null ? null : (actors.byId.get(selectedId.value) ?? null));
  const selected = computed(() => of(travel.shown.value));
  const whole = computed(() => of(travel.base.value));
  const machine = computed(() => whole.value?.machine ?? '');
  const treeRows = new TreeRows();

  const chart = computed(() => charts.value.get(machine.value));
  const { drawings, stop: stopDrawings } = followDrawings(chart, source);
  const simulation = createSimulation();
  const stopSimulation = effect(() => {
    if (simulation.simulated.value?.actor.id !== selectedId.value) simulation.leave();
  });
  const stopLink = link.travelWith(travel, isLoaded, whole);

  return {
    app,
    travel,
    charts,
    isLoaded,
    live: feed.actors,
    rows: computed(() => treeRows.of(travel.shown.value, link.filter.value, openings.value)),
    counts: computed(() => countsOf(travel.shown.value)),
    filter: link.filter,
    selectedId,
    selected,
    whole,
    chart,
    isPending: (name) => source.isPending(name),
    copy: computed(() => chart.value && source.copyOf(chart.value, drawings.value)),
    WholeFact: source.WholeFact,
    drawings,
    simulation,
    tab: link.tab,
    pick: link.pick,
    asksToStop: link.asksToStop,
    opened,
    busy,
    notice,
    clock: computed(() => travel.moment.value?.at ?? opened.value?.recording.recordedAt.getTime() ?? app.now.value),
    showsHeat,
    compared,
    select(id) {
      batch(() => {
        compared.value = { a: null, b: null };
        link.select(id);
      });
    },
    setFilter: (change) => link.setFilter({ ...everything, ...link.filter.peek(), ...change }),
    setTab: (tab) => link.set({ tab }),
    askToStop: (asks) => link.set({ ask: asks ? 'stop' : undefined }),
    setPick: (pick) => link.set({ pick: pick ? `${pick.kind}:${pick.id}` : undefined, ...(pick && { tab: 'states' }) }),
    setOpen(id, isOpen) {
      openings.value = new Map(openings.peek()).set(id, isOpen);
    },
    toggleHeat() {
      showsHeat.value = !showsHeat.peek();
    },
    compare(change) {
      compared.value = { ...compared.peek(), ...change };
    },
    dismiss() {
      notice.value = null;
    },
    act: commandAction(app, busy, notice),
    ...recordingActions({ app, travel, charts, opened, notice }),
    close() {
      travel.pause();
      stopLink();
      source.stop();
      stopDrawings();
      stopSimulation();
      feed.close();
    },
  };
}

/** Fetches the drawings of the shown chart. */
function followDrawings(chart: ReadonlySignal<Chart | undefined>, { drawingsOf }: ActorSource) {
  const drawings = signal<Drawings | null | undefined>(undefined);
  const stop = effect(() => {
    const shown = chart.value;
    drawings.value = undefined;
    if (shown) {
      void drawingsOf(shown).then((made) => {
        if (chart.peek() === shown) drawings.value = made;
      });
    }
  });
  return { drawings, stop };
}

/** Sends commands to the Hub; the stream reports their effect. */
function commandAction(app: App, busy: Signal<Running | null>, notice: Signal<string | null>): Store['act'] {
  return async (action, id, workspacePath) => {
    busy.value = { id, action };
    notice.value = null;
    try {
      await app.api.send('POST', `/v1/appservers/${action}`, { workspacePath });
    } catch (error) {
      notice.value = messageOf(error);
    } finally {
      busy.value = null;
    }
  };
}

interface RecordingParts extends Pick<Store, 'app' | 'travel' | 'charts'> {
  readonly opened: Signal<Opened | null>;
  readonly notice: Signal<string | null>;
}

/** Writes, opens and closes recordings. */
function recordingActions({
  app,
  travel,
  charts,
  opened,
  notice,
}: RecordingParts): Pick<Store, 'record' | 'open' | 'closeRecording'> {
  return {
    record() {
      const { kind, version, workspacePath } = app.page.peek() ?? { kind: 'hub', version: '' };
      const about = opened.peek()?.recording.about ?? { kind, version, ...(workspacePath && { workspacePath }) };
      const records = recordsOf(travel.base.peek());
      return writeRecording({ about, recordedAt: new Date(), charts: [...charts.peek().values()], records });
    },
    async open(file) {
      try {
        const recording = readRecording(await file.text());
        batch(() => {
          travel.leave();
          opened.value = { name: file.name, recording, actors: actorsOf(recording) };
          notice.value = null;
        });
      } catch (error) {
        notice.value = messageOf(error);
      }
    },
    closeRecording() {
      batch(() => {
        travel.leave();
        opened.value = null;
      });
    },
  };
}

/** Default selection before the user has chosen an actor. */
function firstOf({ byId }: Actors): string | null {
  let first: string | null = null;
  for (const { id, machine, ending } of byId.values()) {
    if (ending) continue;
    if (machine === 'agent-server') return id;
    first ??= id;
  }
  return first ?? byId.keys().next().value ?? null;
}
