import { batch, computed, signal } from '@preact/signals';
import superjson from 'superjson';
import type { Chart, InspectionRecord } from '../../protocol/index.ts';
import { type Action, Api } from '../api.ts';
import { type Connection, readStream, type StreamEvent } from '../stream.ts';
import { forgetToken } from '../token.ts';
import { type Actors, apply, noActors, treeOf } from './actors.ts';

/** A server tells what it has at once. */
const quietMs = 300;

/** Everything the page shows, and what a person can do to it. One per page. */
export function createStore(token: string) {
  const api = new Api(token);
  const actors = signal<Actors>(noActors);
  const charts = signal<ReadonlyMap<string, Chart>>(new Map());
  const connection = signal<Connection>({ state: 'connecting' });
  const selectedId = signal<string | null>(fromHash());
  const filter = signal('');
  const busy = signal<{ readonly id: string; readonly action: Action } | null>(null);
  const notice = signal<string | null>(null);
  const helpIsOpen = signal(false);
  const now = signal(Date.now());
  /** Whether the stream has told everything at least once. */
  const isTold = signal(false);

  const rows = computed(() => treeOf(actors.value, filter.value));
  const selected = computed(() => {
    const { byId } = actors.value;
    const wanted = selectedId.value === null ? undefined : byId.get(selectedId.value);
    if (wanted) return wanted;
    const all = [...byId.values()];
    return all.find((actor) => actor.machine === 'agent-server') ?? all[0] ?? null;
  });

  function onEvents(events: readonly StreamEvent[]): void {
    const records = events.map((event) => superjson.parse<InspectionRecord>(event.data));
    batch(() => {
      actors.value = apply(actors.value, records);
      now.value = Date.now();
      isTold.value = true;
    });
  }

  return {
    actors,
    charts,
    connection,
    selected,
    filter,
    busy,
    notice,
    helpIsOpen,
    now,
    isTold,
    rows,

    /** Connects, and stays connected until the signal aborts. */
    start(signal: AbortSignal): void {
      const loadCharts = () =>
        api.charts().then(
          (list) => {
            charts.value = new Map(list.map((chart) => [chart.name, chart]));
          },
          (error: unknown) => {
            notice.value = `The charts could not be loaded: ${words(error)}`;
          },
        );
      void readStream({
        url: 'v1/inspect',
        token,
        signal,
        onEvents,
        onOpen: (resumed) => {
          if (!resumed) actors.value = noActors;
          // Where no actor lives nothing is told: then that is what there is to know.
          setTimeout(() => {
            isTold.value = true;
          }, quietMs);
          if (charts.value.size === 0) void loadCharts();
        },
        onConnection: (next) => {
          connection.value = next;
          if (next.state === 'refused') forgetToken();
        },
      });
      const clock = setInterval(() => {
        now.value = Date.now();
      }, 1000);
      const follow = () => {
        selectedId.value = fromHash();
      };
      addEventListener('hashchange', follow);
      signal.addEventListener('abort', () => {
        clearInterval(clock);
        removeEventListener('hashchange', follow);
      });
    },

    select(id: string): void {
      selectedId.value = id;
      history.replaceState(null, '', `#/actor/${encodeURIComponent(id)}`);
    },

    /** Asks the Hub; what happens then is told by the stream. */
    async act(action: Action, id: string, workspacePath: string): Promise<void> {
      busy.value = { id, action };
      notice.value = null;
      try {
        await api.act(action, workspacePath);
      } catch (error) {
        notice.value = words(error);
      } finally {
        busy.value = null;
      }
    },
  };
}

export type Store = ReturnType<typeof createStore>;

const words = (error: unknown): string => (error instanceof Error ? error.message : String(error));

function fromHash(): string | null {
  const [, id] = /^#\/actor\/(.+)$/.exec(location.hash) ?? [];
  try {
    return id === undefined ? null : decodeURIComponent(id);
  } catch {
    return null;
  }
}
