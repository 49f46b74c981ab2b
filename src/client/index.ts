/**
 * The public SDK, published as `oratorio/client`: finding or starting the Hub of a user (`connectHub`), speaking to it
 * (`HubClient`), and speaking to an agent server (`AppServerClient`). The command line and the tests use it as any program
 * would. `discover.ts`, `connect.ts` and `start-hub.ts` need Node; the rest needs `fetch` and `WebSocket` only.
 * Never here: server code, anything that decides on behalf of the Hub.
 */
export { JsonRpcError } from '../rpc/index.ts';
export type {
  ExitAnswer,
  FleetListAnswer,
  HostAnswer,
  HubThreadListAnswer,
  InboxDecisionAnswer,
  InboxHistoryAnswer,
  InboxItemAnswer,
  PlaceStatusAnswer,
  RecordAnswer,
  ScopedTokenAnswer,
  StatusAnswer,
} from './answers.ts';
export {
  AppServerClient,
  type AppServerClientOptions,
  type InitializeResult,
  type RequestOptions,
  type RpcNotification,
} from './app-server-client.ts';
export { type Connection, type ConnectOptions, type ConnectProgress, connectHub } from './connect.ts';
export { type DiscoverOptions, type Discovery, discoverHub, hubLockFile, type NoHubReason } from './discover.ts';
export {
  AppServerConnectionError,
  AppServerSilentError,
  HubInvalidResponseError,
  HubRequestError,
  HubUnavailableError,
  ServerNotProvenError,
  TurnFailedError,
  type UnprovenReason,
} from './errors.ts';
export { backoffMs } from './event-stream.ts';
export {
  type CheckpointAnswer,
  type DiffAnswer,
  type DiffOptions,
  type ForkedThread,
  type ForkOptions,
  forkThread,
  listCheckpoints,
  type MergeOptions,
  mergeFork,
  type RestoredAnswer,
  type RestoreOptions,
  restoreCheckpoint,
  turnDiff,
  type UndoOptions,
  undoTurns,
} from './files.ts';
export type { HubAddress } from './http.ts';
export {
  type CallOptions,
  type EventsOptions,
  HubClient,
  type HubClientOptions,
  isHubEvent,
  type LogsOptions,
  type ReceivedEvent,
  type ThreadsOptions,
} from './hub-client.ts';
export { joinTurn, lastingTurn } from './lasting-turn.ts';
export { type ProofRequest, proveServer } from './proof.ts';
export {
  conflictLines,
  notCoveredLines,
  restoredLines,
  type Uncovered,
  uncoveredBefore,
  uncoveredLines,
} from './restore-lines.ts';
export {
  type FinishedTurn,
  type RunningTurn,
  type StartThreadOptions,
  startThread,
  startTurn,
  type TurnEvent,
} from './running-turn.ts';
export type { SilenceOptions } from './silence.ts';
export { type SseHandlers, type SseMessage, SseParser } from './sse-parser.ts';
export { type Command, hubCommand, hubLogFile } from './start-hub.ts';
