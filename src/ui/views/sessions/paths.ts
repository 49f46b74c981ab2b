import { dashboardPaths } from '../../../protocol/browser.ts';

type Query = Readonly<Record<string, string | number | undefined>>;

function path(pattern: string, segments: Readonly<Record<string, string | number>> = {}, query: Query = {}): string {
  const filled = pattern.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(segments[name] ?? ''));
  const search = new URLSearchParams(
    Object.entries(query).flatMap(([name, value]) =>
      value === undefined || value === '' ? [] : [[name, String(value)]],
    ),
  ).toString();
  return search === '' ? filled : `${filled}?${search}`;
}

/** Paths of the Dashboard API for these views. */
export const paths = {
  summary: dashboardPaths.summary,
  sessions: (query: Query = {}) => path(dashboardPaths.sessions, {}, query),
  events: (sessionKey: string, query: Query = {}) => path(dashboardPaths.sessionEvents, { sessionKey }, query),
  event: (sessionKey: string, id: number) => path(dashboardPaths.sessionEvent, { sessionKey, id }),
  deleteSession: (sessionKey: string) => path(dashboardPaths.deleteSession, { sessionKey }),
  deleteSessions: dashboardPaths.deleteSessions,
} as const;

/** Most events of one page: `defaults.dashboard.maxEventsPerPage`. */
export const maxEventsPerPage = 5_000;
/** The first page is small, so that there is something to read at once. */
export const firstEventsPage = 500;
