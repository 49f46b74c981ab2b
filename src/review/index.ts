/**
 * The review backend: syncs pull requests, has an agent server review them, and writes the reviews back where that is allowed.
 * The command line starts it. Never here: the agent (a process of its own, asked over JSON-RPC), the Hub, a user interface.
 */
export {
  type Backend,
  BackendError,
  type BackendErrorCode,
  type BackendOptions,
  type BackendOverrides,
  serviceTokenFile,
  startBackend,
} from './backend/index.ts';
