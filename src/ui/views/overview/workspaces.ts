import { batch, computed, type ReadonlySignal, signal } from '@preact/signals';
import superjson from 'superjson';
import { messageOf } from '../../../lib/browser.ts';
import { stateWordOf, toneOfState } from '../../../protocol/browser.ts';
import type { AppServerRecord, HubStatus, InspectionRecord, Problem } from '../../../protocol/index.ts';
import type { App } from '../../app/app.ts';
import type { StreamEvent } from '../../app/stream.ts';
import { type Look, leavesOf, lookOf, lookOfTone, publicState } from '../../parts/tone.ts';

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
  readonly signal: string | null;
  readonly lastError: string | null;
}

/** Listed workspace: its live state, and the further fields of the Hub's record. */
export interface Shown extends Workspace {
  /** The state in words of the field. */
  readonly word: string;
  readonly problems: readonly Problem[];
  /** Record with the same state as the live one; undefined while it is being fetched. */
  readonly record: AppServerRecord | undefined;
}

export type Action = 'ensure' | 'restart' | 'stop';

/** All workspaces of a Hub, and the actions on them. */
export function createWorkspaces(app: App) {
  const byId = new Map<string, Workspace>();
  const version = signal(0);
  const isLoaded = signal(false);
  const status = signal<HubStatus | null>(null);
  const facts = signal<ReadonlyMap<string, AppServerRecord>>(new Map());
  const fault = signal<string | null>(null);
  const busy = signal<ReadonlyMap<string, Action>>(new Map());
  const abort = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let idleTimer: ReturnType<typeof setTimeout> | undefined;
  let drawTimer: ReturnType<typeof setTimeout> | undefined;

  const all = computed(() => {
    version.value;
    const live = [...byId.values()];
    const reported = new Set(live.map(({ path }) => path));
    // A workspace that has not moved since this Hub began may be known only from the list.
    const rest = [...facts.value.values()].filter(
      ({ canonicalWorkspacePath }) => !reported.has(canonicalWorkspacePath),
    );
    const shown = [...live, ...rest.map(fromRecord)].map((each) => shownOf(each, facts.value.get(each.path)));
    return shown.sort(inOrder);
  });

  function onEvents(events: readonly StreamEvent[]): void {
    for (const { data } of events) take(superjson.parse<InspectionRecord>(data));
    drawTimer ??= setTimeout(draw, drawMs);
    refreshSoon();
  }

  function refreshSoon(): void {
    timer ??= setTimeout(refreshFacts, factsMs);
  }

  function draw(): void {
    drawTimer = undefined;
    batch(() => {
      version.value += 1;
      isLoaded.value = true;
    });
  }

  function take(record: InspectionRecord): void {
    if (record.type === 'actor' && record.machine === machine) {
      if (record.endedAt === undefined) byId.set(record.id, fromActor(record));
    } else if (record.type === 'transition') {
      const known = byId.get(record.id);
      if (known) byId.set(record.id, fromTransition(known, record));
    } else if (record.type === 'gone') byId.delete(record.id);
    else if (record.type === 'dropped') byId.clear();
  }

  async function refreshFacts(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    clearTimeout(idleTimer);
    idleTimer = setTimeout(refreshFacts, idleFactsMs);
    try {
      const [reported, records] = await Promise.all([
        status.peek() ?? app.api.get<HubStatus>('/v1/status', abort.signal),
        app.api.get<readonly AppServerRecord[]>('/v1/appservers', abort.signal),
      ]);
      batch(() => {
        status.value = reported;
        facts.value = new Map(records.map((record) => [record.canonicalWorkspacePath, record]));
        fault.value = null;
        isLoaded.value = true;
      });
    } catch (error) {
      if (!abort.signal.aborted) fault.value = messageOf(error);
    }
  }

  const mark = (path: string, action: Action | undefined) => {
    const next = new Map(busy.peek());
    if (action) next.set(path, action);
    else next.delete(path);
    busy.value = next;
  };

  return {
    all,
    status: status as ReadonlySignal<HubStatus | null>,
    fault: fault as ReadonlySignal<string | null>,
    /** Whether every workspace has been received once. */
    isLoaded: isLoaded as ReadonlySignal<boolean>,
    busy: busy as ReadonlySignal<ReadonlyMap<string, Action>>,
    /** Records of workspaces that ask for more than the user has allowed. */
    restricted: computed(() =>
      [...facts.value.values()].filter(({ restrictedSettings = [] }) => restrictedSettings.length > 0),
    ),
    factsOf: (path: string): AppServerRecord | undefined => facts.value.get(path),
    refresh: () => void refreshFacts(),

    start(): () => void {
      const stop = app.live.listen('inspect', {
        onEvents,
        onReset: () => {
          byId.clear();
          version.value += 1;
          refreshSoon();
        },
      });
      // The end of a turn is not a transition of an agent server.
      const stopEvents = app.live.listen('events', { onEvents: refreshSoon, onReset: refreshSoon });
      void refreshFacts();
      return () => {
        stop();
        stopEvents();
        abort.abort();
        clearTimeout(timer);
        clearTimeout(idleTimer);
        clearTimeout(drawTimer);
      };
    },

    /** Sends a command to the Hub; the stream reports its effect. */
    async act(action: Action, path: string): Promise<void> {
      mark(path, action);
      try {
        await app.api.send('POST', `/v1/appservers/${action}`, { workspacePath: path });
      } catch (error) {
        app.toast({ text: messageOf(error), tone: 'danger', ms: 10_000 });
      } finally {
        mark(path, undefined);
      }
    },

    /** Opens the page of a workspace in a tab of its own, which gets its token from this one. */
    async openDashboard(path: string): Promise<void> {
      try {
        const { url } = await app.api.get<{ url: string }>(`/v1/appservers/dashboard?${new URLSearchParams({ path })}`);
        open(url, '_blank', 'noopener,noreferrer');
      } catch (error) {
        app.toast({ text: `The Dashboard cannot be opened: ${messageOf(error)}`, tone: 'danger' });
      }
    },
  };
}

export type Workspaces = ReturnType<typeof createWorkspaces>;

type Actor = Extract<InspectionRecord, { type: 'actor' }>;
type Transition = Extract<InspectionRecord, { type: 'transition' }>;

const text = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);
const number = (value: unknown): number | null => (typeof value === 'number' ? value : null);

function fromProjection(path: string, states: readonly string[], projection: Actor['projection'], since: number) {
  return {
    path,
    states,
    state: publicState(states),
    look: lookOf({ states, projection }),
    since,
    pid: number(projection['pid']),
    version: text(projection['serverVersion']),
    exitCode: number(projection['exitCode']),
    signal: text(projection['signal']),
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
  const { state, phase, pid, serverVersion, exitCode, lastError, lastStartedAt, lastExitedAt } = record;
  const states = [state, ...(phase === state ? [] : [phase])];
  const since = Date.parse((state === 'exited' ? lastExitedAt : lastStartedAt) ?? '');
  return {
    path: record.canonicalWorkspacePath,
    ...{ states, state, look: lookOf({ states, projection: { exitCode } }), since, pid },
    ...{ version: serverVersion, exitCode, signal: null, lastError },
  };
}

/** Joins the live state of a workspace with its record. A record of another state is late, and only its past is used. */
export function shownOf(workspace: Workspace, known: AppServerRecord | undefined): Shown {
  const record = known?.state === workspace.state ? known : undefined;
  const problems = record?.problems ?? [];
  const { state, states, exitCode } = workspace;
  const phase = record?.phase ?? leavesOf(states)[0] ?? state;
  const word = stateWordOf({ state, phase, exitCode, health: record?.health ?? 'unknown', problems });
  return { ...workspace, look: lookOfTone(toneOfState(word)), word, problems, record };
}

/** Workspaces that need attention come first. */
const ranks: Readonly<Record<Look['tone'], number>> = { danger: 0, warn: 1, progress: 2, ok: 3, neutral: 4 };
const inOrder = (a: Shown, b: Shown): number => ranks[a.look.tone] - ranks[b.look.tone] || (a.path < b.path ? -1 : 1);

/** The problem in a sentence; empty without one. */
export function troubleOf({ state, exitCode, signal: by, lastError, problems: [problem] }: Shown): string {
  if (problem) return problem.what;
  if (state === 'exited') {
    const how = by !== null ? `ended by ${by}` : exitCode === null ? 'exited' : `exit code ${exitCode}`;
    return lastError === null ? how : `${how}: ${lastError}`;
  }
  return state === 'running' || state === 'stopped' ? '' : (lastError ?? '');
}
