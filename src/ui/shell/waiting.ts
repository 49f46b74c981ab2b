import { type ReadonlySignal, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { dashboardPaths } from '../../protocol/browser.ts';
import type { DashboardSummary, InboxItem } from '../../protocol/index.ts';
import type { App } from '../app/app.ts';
import type { Live } from '../app/live.ts';
import type { Page, ViewName } from '../app/server.ts';

/** Source of the number of waiting requests on a page. */
interface Source {
  /** View that answers them, and whose link has the number. */
  readonly view: ViewName;
  /** Events after which to read the number again. */
  readonly events: readonly string[];
  readonly read: (app: App, signal: AbortSignal) => Promise<number>;
  readonly live: (app: App) => Live;
}

const sources: Readonly<Partial<Record<Page['kind'], Source>>> = {
  hub: {
    view: 'inbox',
    events: ['inbox.added', 'inbox.resolved', 'host.connected'],
    read: async ({ hub }, signal) => (await hub.get<readonly InboxItem[]>('/v1/fleet/inbox', signal)).length,
    live: ({ hubLive }) => hubLive,
  },
  workspace: {
    view: 'chat',
    events: ['approval.requested', 'approval.completed'],
    read: async ({ api }, signal) => (await api.get<DashboardSummary>(dashboardPaths.summary, signal)).pendingApprovals,
    live: ({ live }) => live,
  },
};

/** Requests that wait for a person. */
export interface Waiting {
  /** View of this page that answers its own requests. */
  readonly view: ViewName | null;
  readonly count: ReadonlySignal<number>;
  /** Number of requests in the inbox of the Hub; without a Hub, of the page itself. */
  readonly all: ReadonlySignal<number>;
}

/** Follows the numbers of waiting requests. Keeps the last number while the server does not answer. */
export function useWaiting(app: App, page: Page): Waiting {
  const source = sources[page.kind];
  const view = source && page.views.includes(source.view) ? source.view : null;
  const count = useCount(app, view === null ? undefined : source);
  const ofHub = useCount(app, app.server.filesFrom === null ? undefined : sources.hub);
  return { view, count, all: app.server.filesFrom === null ? count : ofHub };
}

function useCount(app: App, source: Source | undefined): ReadonlySignal<number> {
  const count = useSignal(0);
  useEffect(() => {
    if (!source) return;
    let abort = new AbortController();
    const read = () => {
      abort.abort();
      abort = new AbortController();
      const { signal } = abort;
      source.read(app, signal).then(
        (number) => {
          if (!signal.aborted) count.value = number;
        },
        () => undefined,
      );
    };
    const stop = source.live(app).listen('events', {
      onEvents: (events) => {
        if (events.some(({ event }) => source.events.includes(event))) read();
      },
      onReset: read,
    });
    read();
    return () => {
      stop();
      abort.abort();
    };
  }, [app, source]);
  return count;
}
