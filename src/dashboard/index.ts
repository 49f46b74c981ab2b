/**
 * The Dashboard of one workspace: its page and the API behind it (specification §4.3), who may ask, the stream of events, and
 * the read-only viewer that needs no agent server. The agent server serves it, `oratorio dashboard` runs the viewer. Never
 * here: the shape and the storage of traces (`src/agent`), how automations run, the page's own code (`src/ui`).
 */
export { Access, type AccessOptions, type Caller } from './access.ts';
export { dashboardGuard, dashboardHeaders } from './guard.ts';
export type {
  Automations,
  Conversations,
  DashboardOptions,
  RuntimeStatus,
  SessionDeletion,
  TraceFeed,
} from './options.ts';
export { createDashboard, type Dashboard } from './routes.ts';
export { EventStream } from './stream.ts';
export { openViewer, type Viewer, ViewerError, type ViewerOptions } from './viewer.ts';
