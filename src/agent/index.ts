/**
 * Runs agents: threads and turns (`runtime/`), tools, model providers, storage and traces. Its events are the protocol's
 * notifications; a subscriber names its thread. The protocol faces (JSON-RPC, chat completions, AG-UI) call it. Sockets, HTTP
 * servers and access control belong to them.
 */

export type * from './chat-request-store.ts';
export * from './connect/index.ts';
export * from './delegate.ts';
export { AgentError, type AgentErrorName } from './errors.ts';
export { discardingNotices, isDiscarded } from './history.ts';
export { Hooks } from './hooks/index.ts';
export {
  brief,
  describeCommands,
  nestedInstructionsFor,
  ownSystemPrompt,
  type PromptPart,
  promptParts,
  type Surroundings,
} from './instructions/index.ts';
export {
  createSkillTool,
  Library,
  listDescribed,
  type PromptCommand,
  type Skill,
  splitWords,
} from './library/index.ts';
export * from './model.ts';
export { pictureFor } from './pictures.ts';
export { parserAdvice, printedCall } from './printed-call.ts';
export {
  agentLimit,
  CatalogueError,
  catalogueUrl,
  costOf,
  derivedKind,
  type FactSource,
  type KnownFacts,
  type ModelList,
  type ModelRouter,
  type ModelSettings,
  modelHost,
  modelSettingsOf,
  modelSource,
  type ProviderSettings,
  refreshCatalogue,
  type SidecarUpstream,
} from './providers/index.ts';
export type * from './response-store.ts';
export {
  describeRule,
  parseScript,
  prefixOf,
  RuleBook,
  type RuleResult,
  readSavedRules,
  type SourcedRule,
  savedRulesFile,
  writeSavedRules,
} from './rules/index.ts';
export * from './runtime/index.ts';
export type * from './schedule-store.ts';
export {
  DayLedger,
  type History,
  type ImportedHistory,
  importHistory,
  type ListedThread,
  listThreads,
  MemoryStore,
  openHistory,
  openStore,
  type Store,
  type ThreadListRange,
  type ThreadReader,
  TraceRetention,
} from './store/index.ts';
export * from './thread-store.ts';
export type * from './tool.ts';
export { type ReviewedSchema, reviewOf, reviewToolSchema } from './tool-schema.ts';
export {
  type AdoptedSandboxes,
  BackgroundProcesses,
  createBuiltinTools,
  DelegateCommandError,
  type DelegateCommands,
  DelegateFileError,
  type DelegateFiles,
  delegateCommands,
  delegateFiles,
  endKeptCalls,
  HandOverError,
  imageReader,
  isSandboxInstalled,
  type KeepSettings,
  keptOfCall,
  OutputFiles,
  type PathSearch,
  pathSearch,
  placeRules,
  Sandboxes,
  type SandboxMode,
  type SandboxStatus,
  ShellEnvironment,
  sandboxStateOf,
  sandboxStatus,
  selectToolNames,
  selectTools,
  shellEnvironment,
  ThreadDirectories,
  type ToolSettings,
  takeSandboxes,
  textReader,
  trySandbox,
  userCommands,
} from './tools/index.ts';
export { forksOf, type OpenFork, type OpenWorktree, worktreesOf } from './worktrees/index.ts';
