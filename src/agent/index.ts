/**
 * The runtime: threads, turns, tools, model providers, traces. Its events are the protocol's notifications; whoever wants to
 * hear of a thread subscribes. Called by the protocol faces (JSON-RPC, chat completions, AG-UI). Never here: sockets, HTTP
 * servers, who may ask what.
 */
export { AgentError, type AgentErrorName } from './errors.ts';
export { Feed, type Listener, type ThreadEvent } from './feed.ts';
export * from './model.ts';
export { type ProviderSettings, providerSource } from './providers/choose.ts';
export type * from './runtime.ts';
export type * from './schedule-store.ts';
export {
  type ImportedHistory,
  importHistory,
  MemoryStore,
  openScheduleReader,
  openStore,
  openTraceReader,
  type Store,
  TraceRetention,
} from './store/index.ts';
export { ThreadService, type ThreadServiceOptions } from './thread-service.ts';
export * from './thread-store.ts';
export type * from './tool.ts';
export {
  createBuiltinTools,
  imageReader,
  type SandboxStatus,
  sandboxStatus,
  selectToolNames,
  selectTools,
  type ToolSettings,
} from './tools/index.ts';
export type { RuntimeSettings } from './turn-host.ts';
