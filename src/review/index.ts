/**
 * The review backend: pull requests are synced, reviewed by an agent server, and written back where that is allowed. The command
 * line starts it. Never here: the agent (it is another process, asked over JSON-RPC), the Hub, a user interface.
 */

export { BackendError, type BackendErrorCode } from './backend/error.ts';
export { serviceTokenFile } from './backend/state.ts';
export { type Backend, type BackendOptions, type BackendOverrides, startBackend } from './backend.ts';
