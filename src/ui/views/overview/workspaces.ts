import { batch, computed, type ReadonlySignal, signal } from '@preact/signals';
import superjson from 'superjson';
import { messageOf } from '../../../lib/browser.ts';
import { sinceOf, stateWordOf, toneOfState } from '../../../protocol/browser.ts';
import type { AppServerRecord, HubStatus, InspectionRecord, Problem } from '../../../protocol/index.ts';
import type { App } from '../../app/app.ts';
import type { StreamEvent } from '../../app/stream.ts';
import { splitPath } from '../../parts/format.ts';
import { type Look, leavesOf, lookOf, lookOfTone, publicState } from '../../parts/tone.ts';
import type { Action } from '../../parts/workspace-acts.ts';

const machine = 'agent-server';
/** Pause after a transition before facts that no transition reports are fetched again, together. */
const factsMs = 500;
/** Interval of fetching facts that no stream reports, e.g. an edited configuration file. */
const idleFactsMs = 15_000;
/** Pause before drawing: a Hub with many workspaces sends them in several pieces, which are drawn together. */
const drawMs = 30;

/** Live state of a workspace's agent server, from the Hub. */
export interface Workspace {
  readonly path: string;
  readonly states: readonly string[];
  readonly state: string;
  readonly look: Look;
  readonly since: number;
  readonly pid: number | null;
  readonly version: string | null;
  readonly exitCode: number | null;
  readonly lastError: string | null;
}

/** Listed workspace: its live state, and the further fields of the Hub's record. */
export interface Shown extends Workspace {
  /** The state in words of the field. */
  readonly word: string;
  readonly problems: readonly Problem[];
  /** Record with the same state as the live one; undefined while it is being fetched. */
  readonly record: AppServerRecord | undefined;
  /** Path of its page on the Hub; null until it is known. */
  readonly page: string | null;
}

const stores = new WeakMap<App, Workspaces>();

/** The one store of a page: rail, lists and palette show the same rows. */
export function workspacesOf(app: App): Workspaces {
  const store = stores.get(app) ?? new Workspaces(app);
  stores.set(app, store);
  return store;
}

/** All workspaces of a Hub, and the actions on them. */
export class Workspaces {
  readonly #app: App;
  readonly #byId = new Map<string, Workspace>();
  readonly #version = signal(0);
  readonly #isLoaded = signal(false);
  readonly #status = signal<HubStatus | null>(null);
  readonly #facts = signal<ReadonlyMap<string, AppServerRecord>>(new Map());
  readonly #fault = signal<string | null>(null);
  readonly #busy = signal<ReadonlyMap<string, Action>>(new Map());
  #abort = new AbortController();
  #users = 0;
  #leave: () => void = () => {};
  #timer: ReturnType<typeof setTimeout> | undefined;
  #idleTimer: ReturnType<typeof setTimeout> | undefined;
  #drawTimer: ReturnType<typeof setTimeout> | undefined;

  readonly all = computed(() => {
    this.#version.value;
    const live = [...this.#byId.values()];
    const reported = new Set(live.map(({ path }) => path));
    // A workspace that has not moved since this Hub began may be known only from the list.
    const rest = [...this.#facts.value.values()].filter(
      ({ canonicalWorkspacePath }) => !reported.has(canonicalWorkspacePath),
    );
    const shown = [...live, ...rest.map(fromRecord)].map((each) => shownOf(each, this.#facts.value.get(each.path)));
    return shown.sort(inOrder);
  });
  readonly status: ReadonlySignal<HubStatus | null> = this.#status;
  readonly fault: ReadonlySignal<string | null> = this.#fault;
  /** Whether every workspace has been received once. */
  readonly isLoaded: ReadonlySignal<boolean> = this.#isLoaded;
  readonly busy: ReadonlySignal<ReadonlyMap<string, Action>> = this.#busy;

  constructor(app: App) {
    this.#app = app;
  }

  factsOf(path: string): AppServerRecord | undefined {
    return this.#facts.value.get(path);
  }

  refresh(): void {
    void this.#refreshFacts();
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
    const { hubLive, server } = this.#app;
    this.#abort = new AbortController();
    // The page of a workspace has rows from records alone: it need not follow every actor of the Hub.
    const stop =
      server.kind === 'hub'
        ? hubLive.listen('inspect', {
            onEvents: (events) => this.#onEvents(events),
            onReset: () => {
              this.#byId.clear();
              this.#version.value += 1;
              this.#refreshSoon();
            },
          })
        : () => {};
    // The end of a turn is not a transition of an agent server.
    const stopEvents = hubLive.listen('events', {
      onEvents: () => this.#refreshSoon(),
      onReset: () => this.#refreshSoon(),
    });
    void this.#refreshFacts();
    return () => {
      stop();
      stopEvents();
      this.#abort.abort();
      clearTimeout(this.#timer);
      this.#timer = undefined;
      clearTimeout(this.#idleTimer);
      clearTimeout(this.#drawTimer);
      this.#drawTimer = undefined;
    };
  }

  /** Sends a command to the Hub; the stream reports its effect. */
  async act(action: Action, path: string): Promise<void> {
    this.#mark(path, action);
    try {
      await this.#app.hub.send('POST', `/v1/appservers/${action}`, { workspacePath: path });
    } catch (error) {
      this.#app.toast({ text: messageOf(error), tone: 'danger', ms: 10_000 });
    } finally {
      this.#mark(path, undefined);
    }
  }

  #onEvents(events: readonly StreamEvent[]): void {
    for (const { data } of events) this.#take(superjson.parse<InspectionRecord>(data));
    this.#drawTimer ??= setTimeout(() => this.#draw(), drawMs);
    this.#refreshSoon();
  }

  #refreshSoon(): void {
    this.#timer ??= setTimeout(() => this.#refreshFacts(), factsMs);
  }

  #draw(): void {
    this.#drawTimer = undefined;
    batch(() => {
      this.#version.value += 1;
      this.#isLoaded.value = true;
    });
  }

  #take(record: InspectionRecord): void {
    if (record.type === 'actor' && record.machine === machine) {
      if (record.endedAt === undefined) this.#byId.set(record.id, fromActor(record));
    } else if (record.type === 'transition') {
      const known = this.#byId.get(record.id);
      if (known) this.#byId.set(record.id, fromTransition(known, record));
    } else if (record.type === 'gone') this.#byId.delete(record.id);
    else if (record.type === 'dropped') this.#byId.clear();
  }

  async #refreshFacts(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    clearTimeout(this.#idleTimer);
    this.#idleTimer = setTimeout(() => this.#refreshFacts(), idleFactsMs);
    try {
      const [reported, records] = await Promise.all([
        this.#app.hub.get<HubStatus>('/v1/status', this.#abort.signal),
        this.#app.hub.get<readonly AppServerRecord[]>('/v1/appservers', this.#abort.signal),
      ]);
      batch(() => {
        this.#status.value = reported;
        this.#facts.value = new Map(records.map((record) => [record.canonicalWorkspacePath, record]));
        this.#fault.value = null;
        this.#isLoaded.value = true;
      });
    } catch (error) {
      if (!this.#abort.signal.aborted) this.#fault.value = messageOf(error);
    }
  }

  #mark(path: string, action: Action | undefined): void {
    const next = new Map(this.#busy.peek());
    if (action) next.set(path, action);
    else next.delete(path);
    this.#busy.value = next;
  }
}

type Actor = Extract<InspectionRecord, { type: 'actor' }>;
type Transition = Extract<InspectionRecord, { type: 'transition' }>;

const text = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);
const number = (value: unknown): number | null => (typeof value === 'number' ? value : null);

/** The state as the API has it: a workspace that sleeps is stopped. */
function apiStateOf(states: readonly string[]): string {
  const state = publicState(states);
  return state === 'asleep' ? 'stopped' : state;
}

function fromProjection(path: string, states: readonly string[], projection: Actor['projection'], since: number) {
  return {
    path,
    states,
    state: apiStateOf(states),
    look: lookOf({ states, projection }),
    since,
    pid: number(projection['pid']),
    version: text(projection['serverVersion']),
    exitCode: number(projection['exitCode']),
    lastError: text(projection['lastError']),
  };
}

function fromActor({ title, states, projection, since, at }: Actor): Workspace {
  return fromProjection(title, states, projection, (since ?? at).getTime());
}

function fromTransition(known: Workspace, { to, projection, at }: Transition): Workspace {
  const isMoved = to.join() !== known.states.join();
  return fromProjection(known.path, to, projection, isMoved ? at.getTime() : known.since);
}

function fromRecord(record: AppServerRecord): Workspace {
  const { state, phase, pid, serverVersion, exitCode, lastError } = record;
  const states = [state, ...(phase === state ? [] : [phase])];
  const since = Date.parse(sinceOf(record) ?? '');
  return {
    path: record.canonicalWorkspacePath,
    ...{ states, state, look: lookOf({ states, projection: { exitCode } }), since, pid },
    ...{ version: serverVersion, exitCode, lastError },
  };
}

/** Joins the live state of a workspace with its record. A record of another state is late, and only its past is used. */
export function shownOf(workspace: Workspace, known: AppServerRecord | undefined): Shown {
  const record = known?.state === workspace.state ? known : undefined;
  const problems = record?.problems ?? [];
  const { state, states, exitCode } = workspace;
  const phase = record?.phase ?? leavesOf(states)[0] ?? state;
  const word = stateWordOf({ state, phase, exitCode, health: record?.health ?? 'unknown', problems });
  const isSettled = state !== 'starting' && state !== 'stopping';
  const since = record && isSettled ? Date.parse(sinceOf(record) ?? '') : workspace.since;
  const page = known?.page ?? null;
  return { ...workspace, since, look: lookOfTone(toneOfState(word)), word, problems, record, page };
}

/** Whether the supervisor restarts an agent server after a pause. */
export const isRetrying = (states: readonly string[]): boolean => states.includes('exited.backingOff');

/** Requests of a workspace that wait for a person come first, then trouble. */
const ranks: Readonly<Record<Look['tone'], number>> = { danger: 0, warn: 1, progress: 2, ok: 3, neutral: 4 };
const rankOf = ({ look, record }: Shown): number => ((record?.pendingApprovals ?? 0) > 0 ? -1 : ranks[look.tone]);
const inOrder = (a: Shown, b: Shown): number => rankOf(a) - rankOf(b) || (a.path < b.path ? -1 : 1);

/** The first problem in a sentence; empty without one. */
export function troubleOf({ state, lastError, problems: [problem] }: Shown): string {
  if (problem) return problem.what;
  return state === 'running' || state === 'stopped' ? '' : (lastError ?? '');
}

/** Name of a workspace for people: the last segment of its path. */
export const nameOf = ({ path, record }: Pick<Shown, 'path' | 'record'>): string =>
  record?.displayName ?? splitPath(path).tail.replace(/^[/\\]/, '');
