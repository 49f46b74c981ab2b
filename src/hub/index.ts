/**
 * The Hub: one per user, it keeps one agent server per workspace, revives it, and tells everybody who listens. The command
 * line starts it (`runHub`); clients speak to it over HTTP only. Never here: JSON-RPC sessions (clients connect to the
 * agent server themselves), process mechanics (`src/supervise`), what may follow what (`machines/`).
 */
export { type Hub, type HubOptions, type HubOutcome, startHub } from './hub.ts';
export { runHub } from './main.ts';
export { hubOpenApi } from './openapi.ts';
