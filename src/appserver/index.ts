/**
 * The process that serves one workspace: it holds the workspace's lock, puts the runtime together, offers it as JSON-RPC
 * over WebSocket and standard input, and as chat completions and AG-UI, reports its health, and leaves nothing behind when it ends. `main.ts` is its entry; the `app-server` command calls `runAppServer`. Never
 * here: the work of a turn (`src/agent`), the supervision of a server (`src/hub`).
 */
export type { AppServer, AppServerOptions } from './app-server.ts';
export { type RunOptions, type RunOutcome, runAppServer } from './run.ts';
export { protocolDocument } from './schema-document.ts';
export { startAppServer } from './start-app-server.ts';
export { exitCodes, StartupError } from './startup-error.ts';
