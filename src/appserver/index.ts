/**
 * The process that serves one workspace: it holds the workspace's lock, speaks JSON-RPC over WebSocket, tells of its
 * health, and ends without leaving anything. `main.ts` is its entry; the `app-server` command calls `runAppServer`. Never
 * here: what a turn does (`src/agent`), how a server is supervised (`src/hub`).
 */
export { type AppServer, type AppServerOptions, startAppServer } from './app-server.ts';
export { type RunOptions, type RunOutcome, runAppServer } from './run.ts';
export { exitCodes, StartupError } from './startup-error.ts';
