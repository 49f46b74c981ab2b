/**
 * The Hub: runs one agent server per workspace, restarts it, and publishes events about it. One Hub per user home. The
 * command line starts it (`runHub`); clients use it over HTTP only. Never here: JSON-RPC sessions (clients connect to the
 * agent server themselves), process mechanics (`src/supervise`), states and transitions (`machines/`).
 */
export type { HubOptions } from './claimed-hub.ts';
export { type Hub, type HubOutcome, startHub } from './hub.ts';
export { runHub } from './main.ts';
export { hubOpenApi } from './openapi.ts';
