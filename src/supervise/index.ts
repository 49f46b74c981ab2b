/**
 * Operating-system processes and their resources: starting, recognising, adopting and ending them, locks that the
 * kernel holds, files that are written whole or not at all, ports, logs, probes. The Hub supervises with it, the agent
 * server takes its workspace's lock with it, the client reads addresses with it.
 *
 * Every question about a process has three answers, yes, no and unknown; unknown never leads to a signal or to a second
 * start. Never here: workspaces, policy (when to restart, how long to wait), HTTP servers, statecharts.
 *
 * Limits: between the check of an identity and the signal lie microseconds (Node has no pidfd). A descendant that left the
 * group is found by its environment, on Linux only, and not if it cleared or overwrote that environment; below an external
 * agent, descendants seen while it worked are still found (`Descendants`, `ProcessRecord`), and all where it has a control
 * group of its own (`ControlGroup`).
 */

export {
  AtomicFile,
  ensurePrivateDirectory,
  type JsonFile,
  PrivateDirectoryError,
  readJson,
  readUntrustedJson,
  type WriteOptions,
  writeFileAtomic,
  writeFileAtomicAsync,
} from '../lib/index.ts';
export { type AdoptOptions, adoptManaged } from './adopt.ts';
export { monotonicMs } from './clock.ts';
export { ControlGroup, endControlGroup } from './control-group.ts';
export { damagedCopyPath, damagedRecords, emptiedHistory, linkDamagedCopy, lostHistory } from './damage.ts';
export {
  type DashboardTokens,
  dashboardToken,
  dashboardTokenFile,
  revokeDashboardTokens,
  rotateDashboardToken,
  watchedDashboardToken,
  watchedDashboardTokens,
} from './dashboard-token.ts';
export { Descendants } from './descendants.ts';
export { type ChildEnvironmentOptions, childEnvironment, toolChainEnvironment } from './environment.ts';
export { type HandOver, orderHandOver, takeHandOver } from './hand-over.ts';
export { isAlive, type Liveness, ownIdentity, readIdentity } from './identity.ts';
export { closeBeforeStart, closeInherited } from './inherited.ts';
export {
  endKept,
  endKeptCommand,
  findKeeper,
  KeptCommand,
  type KeptFiles,
  KeptSandbox,
  keptDirectory,
  keptFiles,
  keptMarker,
  keptOwner,
  listKept,
  makeKeptFile,
  markCut,
  ownKept,
  type ReadCommand,
  readKept,
  removeKept,
  removeSandboxLines,
  sandboxLine,
  writeKeeper,
  writeKept,
} from './kept-commands.ts';
export { ListenerCheck, occupantOf, type StartedProcess } from './listeners.ts';
export { acquireLock, type Lock, LockError, type LockOptions, lockFault, probeLock } from './lock.ts';
export { lockHolder } from './lock-holder.ts';
export { type FollowOptions, followLog } from './log-follow.ts';
export { capLog, LogKeeper, logKeeper } from './log-keeper.ts';
export { readTail } from './log-tail.ts';
export type { ManagedProcess, ProcessExit, ProcessLogs } from './managed.ts';
export { killMarked } from './marked.ts';
export { outsideEnvironment, searchPathOutside, withOutsideLibraries } from './outside.ts';
export { knownPageToken, pageToken, pageTokenFile, revokePageToken, watchedPageToken } from './page-token.ts';
export { type PipedExit, PipedProcess, type PipedProcessOptions } from './piped-process.ts';
export { type PollOptions, type PollResult, pollUntil } from './poll.ts';
export { PortAllocator, type PortAllocatorOptions, PortUnavailableError } from './ports.ts';
export { endRecorded, ProcessRecord, processRecords } from './process-record.ts';
export { killGroupVerified, ProcessTree, type SweepReport } from './process-tree.ts';
export { commandLine, runsThisProgram } from './procfs.ts';
export { isProvenOurs } from './proof.ts';
export { type ProgramEnd, type ProgramEndCause, type ProgramRun, RunningProgram, runProgram } from './run-program.ts';
export { markerVariable } from './scan.ts';
export type { SignalResult } from './signals.ts';
export { isPermanentSpawnError, logFiles, SpawnError, type SpawnOptions, spawnManaged } from './spawn.ts';
export { enableWriteAheadLog, isBusy, loadSqlite } from './sqlite.ts';
export { removeStaleTemps } from './stale-temps.ts';
export { type LockWait, waitForLock } from './wait-for-lock.ts';
export {
  type LockHolder,
  readAppServer,
  readHolder,
  type WorkspaceFiles,
  withoutTokens,
  workspaceFiles,
  workspaceLockPath,
} from './workspace-files.ts';
