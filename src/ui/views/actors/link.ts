import { computed, effect, type ReadonlySignal } from '@preact/signals';
import type { Router } from '../../app/router.ts';
import { type Tone, toneWords } from '../../parts/tone.ts';
import type { Actor } from './model.ts';
import type { Travel } from './travel.ts';
import type { Filter, Order } from './tree-rows.ts';

export const tabs = ['events', 'sequence', 'states', 'snapshot', 'diff', 'why', 'deadLetters'] as const;
export type Tab = (typeof tabs)[number];

/** A state or an arrow of the chart that the user has selected. */
export interface Picked {
  readonly kind: 'state' | 'edge';
  readonly id: string;
}

type Query = Readonly<Record<string, string | undefined>>;

/** Browsers slow down a page that changes its address more often. */
const settleMs = 250;

/** Selections of this view, and the place where they are stored. */
export interface ActorsLink {
  readonly actor: ReadonlySignal<string | null>;
  /** The one actor to read from the server; absent: all. */
  readonly only?: ReadonlySignal<string>;
  readonly tab: ReadonlySignal<Tab>;
  readonly pick: ReadonlySignal<Picked | null>;
  /** Whether the page shows the confirmation for stopping the actor. */
  readonly asksToStop: ReadonlySignal<boolean>;
  readonly filter: ReadonlySignal<Filter>;
  set(change: Query): void;
  select(id: string): void;
  setFilter(filter: Filter): void;
  /** Follows the shown moment. Returns a function that stops this. */
  travelWith(travel: Travel, isLoaded: ReadonlySignal<boolean>, whole: ReadonlySignal<Actor | null>): () => void;
}

/** Fields of this view in its address: `#/actors/<id>?tab=diff&step=12&pick=state:running&q=demo`. */
export function followLink(router: Router): ActorsLink {
  const query = computed(() => router.route.value.query);
  const actor = computed(() => router.route.value.path[0] ?? null);
  /** Changes the address only while this view is shown. */
  const set = (change: Query) => {
    if (router.route.peek().view === 'actors') router.set(change);
  };
  return {
    actor,
    tab: computed((): Tab => tabs.find((tab) => tab === query.value['tab']) ?? 'events'),
    pick: computed((): Picked | null => pickOf(query.value['pick'])),
    asksToStop: computed(() => query.value['ask'] === 'stop'),
    filter: computed((): Filter => filterOf(query.value)),
    set,
    select(id: string) {
      const { step: _, pick: __, ask: ___, ...rest } = router.route.peek().query;
      router.go({ view: 'actors', path: [id], query: rest }, true);
    },
    setFilter({ text, tone, machine, isInTrouble, order }: Filter) {
      set({
        q: text,
        tone: tone ?? undefined,
        machine: machine ?? undefined,
        trouble: isInTrouble ? '1' : undefined,
        sort: order === 'name' ? undefined : order,
      });
    },
    travelWith: (travel, isLoaded, whole) => travelWith({ query, set, travel, isLoaded, whole }),
  };
}

function pickOf(text: string | undefined): Picked | null {
  const [, kind, id] = /^(state|edge):(.*)$/s.exec(text ?? '') ?? [];
  return id === undefined ? null : { kind: kind === 'state' ? 'state' : 'edge', id };
}

const orders: readonly Order[] = ['name', 'time', 'failures'];

function filterOf(query: Query): Filter {
  return {
    text: query['q'] ?? '',
    tone: (Object.keys(toneWords) as Tone[]).find((tone) => tone === query['tone']) ?? null,
    machine: query['machine'] ?? null,
    isInTrouble: query['trouble'] === '1',
    order: orders.find((order) => order === query['sort']) ?? 'name',
  };
}

interface LinkOptions {
  readonly query: ReadonlySignal<Query>;
  readonly set: (change: Query) => void;
  readonly travel: Travel;
  readonly isLoaded: ReadonlySignal<boolean>;
  readonly whole: ReadonlySignal<Actor | null>;
}

/** Synchronises the moment with the address: `step` of the actor, or `at` for all. Returns a function that ends this. */
function travelWith({ query, set, travel, isLoaded, whole }: LinkOptions): () => void {
  const textOf = ({ step, at }: { step?: string | undefined; at?: string | undefined }) => `${step ?? ''}@${at ?? ''}`;
  let written = textOf({});
  let timer: ReturnType<typeof setTimeout> | undefined;

  const stopReading = effect(() => {
    const { step, at } = query.value;
    const asked = textOf({ step, at });
    if (asked === written || !isLoaded.value) return;
    const actor = whole.value;
    if (step !== undefined && !actor) return;
    written = asked;
    queueMicrotask(() => {
      if (at !== undefined && Number.isFinite(Number(at))) {
        travel.look({ at: Number(at), n: Number.MAX_SAFE_INTEGER });
        travel.setScope('all');
      } else if (step !== undefined && actor) lookAtStep(travel, actor, Number(step));
      else travel.leave();
    });
  });
  const stopWriting = effect(() => {
    const { moment, scope, shown } = travel;
    const steps = whole.value === null ? undefined : shown.value.byId.get(whole.value.id)?.steps;
    const next =
      moment.value === null
        ? {}
        : scope.value === 'all' || steps === undefined
          ? { at: String(moment.value.at) }
          : { step: String(steps) };
    const text = textOf(next);
    clearTimeout(timer);
    if (text === written || !isLoaded.value) return;
    timer = setTimeout(() => {
      written = text;
      set({ step: undefined, at: undefined, ...next });
    }, settleMs);
  });
  return () => {
    clearTimeout(timer);
    stopReading();
    stopWriting();
  };
}

function lookAtStep(travel: Travel, actor: Actor, step: number): void {
  const at = actor.log.findIndex(({ record }) => record.step === step);
  const [first] = actor.log;
  if (at >= 0) travel.goTo(at + 1);
  else if (first && step < first.record.step) travel.goTo(0);
}
