/**
 * The review backend: syncs pull requests, requests reviews from agent servers over JSON-RPC, and publishes them if writes are
 * enabled. The command line starts it. The agent and the Hub are processes of their own.
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
export {
  type Demo,
  type DemoOptions,
  type DemoRepository,
  makeDemoRepository,
  removeDemo,
  startDemo,
} from './demo/index.ts';
