import { computed, type ReadonlySignal, signal } from '@preact/signals';
import { messageOf } from '../../../lib/browser.ts';
import { hostedName, sinceOf, stateWordOf, toneOfState } from '../../../protocol/browser.ts';
import type { FleetList, FleetRecord, HubStatus, Problem } from '../../../protocol/index.ts';
import type { App } from '../../app/app.ts';
import { createListStore, type ListStore } from '../../app/resource.ts';
import { type Look, lookOfTone } from '../../parts/tone.ts';
import { type Action, sendAct } from '../../parts/workspace-acts.ts';

/** Pause after an event, so that one request follows several of them. */
const factsMs = 500;
/** Interval of fetching facts that no event reports, e.g. an edited configuration file. */
const idleFactsMs = 15_000;

/** Listed workspace of this machine or of a host. */
export interface Shown {
  /** Path; on a host `<host>:<path>`. Each once. */
  readonly path: string;
  readonly record: FleetRecord;
  readonly look: Look;
  /** The state in words of the field. */
  readonly word: string;
  readonly problems: readonly Problem[];
  /** Start of the process that runs, or end of the last one, in milliseconds since the epoch; NaN: unknown. */
  readonly since: number;
}

/** Filters of the list, which the Hub applies. */
export interface Wanted {
  readonly q?: string | undefined;
  readonly group?: string | undefined;
  readonly after?: string | undefined;
  readonly limit?: string;
}

const stores = new WeakMap<App, Workspaces>();

/** The one store of a page: rail and *Now* show the same rows. */
export function workspacesOf(app: App): Workspaces {
  const store = stores.get(app) ?? new Workspaces(app);
  stores.set(app, store);
  return store;
}

/** Workspaces of this machine and of all hosts, those that need a person first, and the actions on them. */
export class Workspaces {
  readonly #app: App;
  readonly #list: ListStore<readonly [FleetList, HubStatus]>;
  readonly #busy = signal<ReadonlyMap<string, Action>>(new Map());
  #wanted: Wanted = {};
  #users = 0;
  #leave: () => void = () => {};

  readonly all = computed(() => (this.list.value?.appServers ?? []).map(shownOf));
  readonly list = computed(() => this.#list.data.value?.[0] ?? null);
  readonly status = computed(() => this.#list.data.value?.[1] ?? null);
  readonly fault: ReadonlySignal<string | null>;
  readonly busy: ReadonlySignal<ReadonlyMap<string, Action>> = this.#busy;

  constructor(app: App) {
    this.#app = app;
    this.#list = createListStore({
      live: app.hubLive,
      isConcerned: () => true,
      gatherMs: factsMs,
      load: (aborted) => {
        const given = Object.entries(this.#wanted).filter(([, value]) => value !== undefined);
        const search = new URLSearchParams({ ...Object.fromEntries(given), order: 'attention' });
        return Promise.all([
          app.hub.get<FleetList>(`/v1/fleet/appservers?${search}`, aborted),
          app.hub.get<HubStatus>('/v1/status', aborted),
        ]);
      },
    });
    this.fault = this.#list.error;
  }

  refresh(): void {
    this.#list.reload();
  }

  /** Shows other workspaces. */
  search(wanted: Wanted): void {
    this.#wanted = wanted;
    this.refresh();
  }

  /** Follows the Hub until every caller has called the returned function. */
  start(): () => void {
    this.#users += 1;
    if (this.#users === 1) this.#leave = this.#follow();
    return () => {
      this.#users -= 1;
      // A view that takes the place of another one starts in the same moment.
      queueMicrotask(() => {
        if (this.#users > 0) return;
        this.#leave();
        this.#leave = () => {};
      });
    };
  }

  #follow(): () => void {
    const stop = this.#list.start();
    const timer = setInterval(() => document.visibilityState === 'visible' && this.#list.reloadSoon(), idleFactsMs);
    this.refresh();
    return () => {
      clearInterval(timer);
      stop();
    };
  }

  /** Sends a command to the Hub of the workspace; the stream reports its effect. */
  async act(action: Action, { path, record }: Shown): Promise<void> {
    this.#mark(path, action);
    try {
      await sendAct(this.#app, action, record);
    } catch (error) {
      this.#app.toast({ text: messageOf(error), tone: 'danger', ms: 10_000 });
    } finally {
      this.#mark(path, undefined);
      this.#list.reloadSoon();
    }
  }

  #mark(path: string, action: Action | undefined): void {
    const next = new Map(this.#busy.peek());
    if (action) next.set(path, action);
    else next.delete(path);
    this.#busy.value = next;
  }
}

/** The parts of a record that a list shows. */
export function shownOf(record: FleetRecord): Shown {
  const { state, host, problems } = record;
  const word = stateWordOf(record);
  const isSettled = state !== 'starting' && state !== 'stopping';
  return {
    ...{ record, word, problems, look: lookOfTone(toneOfState(word)) },
    path: hostedName(host, record.canonicalWorkspacePath),
    since: isSettled ? Date.parse(sinceOf(record) ?? '') : Number.NaN,
  };
}

/** The first problem in a sentence; empty without one. */
export function troubleOf({ record: { state, lastError }, problems: [problem] }: Shown): string {
  if (problem) return problem.what;
  return state === 'running' || state === 'stopped' ? '' : (lastError ?? '');
}

/** Name of a workspace for people: its host and the last segment of its path. */
export const nameOf = ({ record: { host, displayName } }: Shown): string => hostedName(host, displayName);
