/**
 * The runtime: threads, turns, model providers. Its events are the protocol's notifications; whoever wants to hear of a
 * thread subscribes. Called by the protocol faces (JSON-RPC now; chat completions and AG-UI later). Never here: sockets,
 * HTTP servers, who may ask what.
 */
export { AgentError, type AgentErrorName } from './errors.ts';
export { Feed, type Listener, type ThreadEvent } from './feed.ts';
export {
  ModelError,
  type ModelEvent,
  type ModelInfo,
  type ModelMessage,
  type ModelProvider,
  type ModelRequest,
} from './model.ts';
export { type ProviderSettings, providerSource } from './providers/choose.ts';
export { ThreadService, type ThreadServiceOptions } from './thread-service.ts';
export { MemoryThreadStore, type StoredThread, type ThreadStore } from './thread-store.ts';
