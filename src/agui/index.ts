/**
 * AG-UI 1.0 (https://docs.ag-ui.com) onto the runtime: a run of a frontend is a turn of a durable thread, its events are sent
 * as the protocol's. The agent server puts these routes into its HTTP servers. Never here: listening, who may reach the
 * server, the work of a turn.
 */
export { type AguiOptions, aguiRoutes } from './routes.ts';
