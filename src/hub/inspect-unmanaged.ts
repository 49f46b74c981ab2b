import { basename } from 'node:path';
import { messageOf } from '../lib/index.ts';
import { type AppServerRecord, defaults, workspacePagePath } from '../protocol/index.ts';
import {
  isAlive,
  lockHolder,
  probeLock,
  readAppServer,
  type WorkspaceFiles,
  workspaceFiles,
} from '../supervise/index.ts';
import type { HubServices, WorkspaceFacts } from './facts.ts';
import { introduce } from './probe.ts';
import { conditionOf, incidentFor } from './record.ts';
import type { StoredWorkspace } from './store.ts';
import { foreignHolder, ownedMessage, type UnpublishedHolder } from './workspace-files.ts';
import type { WorkspacePath } from './workspace-path.ts';
import { settingsOf } from './workspace-settings.ts';

/** A server that this Hub does not manage reports nothing to it. */
const unmanaged = { isOurs: false, incarnation: null, serviceNotes: [] } as const;

/** The record of a workspace without a process. */
export function restingRecord(
  hub: HubServices,
  { requested, canonical }: WorkspacePath,
  facts?: WorkspaceFacts,
): AppServerRecord {
  const stored = facts?.stored ?? null;
  const settings = settingsOf(hub, canonical);
  const { trust, restrictedSettings } = settings;
  const condition = conditionOf({ ...unmanaged, state: 'stopped', lastError: null }, stored, settings);
  const { problems } = condition;
  const present = { state: 'stopped', phase: 'stopped', nextAttemptAt: null, problems, places: settings.places };
  return {
    workspacePath: requested,
    canonicalWorkspacePath: canonical,
    state: 'stopped',
    pid: null,
    endpoints: {},
    serviceStatus: {},
    serverVersion: null,
    startedByHub: false,
    exitCode: stored?.exitCode ?? null,
    lastError: stored?.lastError ?? null,
    recentStderr: null,
    displayName: basename(canonical),
    phase: 'stopped',
    adopted: false,
    incarnation: 0,
    restartCount: 0,
    nextAttemptAt: null,
    lastStartedAt: stored?.lastStartedAt ?? null,
    lastExitedAt: stored?.lastExitedAt ?? null,
    trust,
    restrictedSettings: [...restrictedSettings],
    ...condition,
    incident: incidentFor(
      present,
      stored ?? { canonicalWorkspacePath: canonical, rest: null, failures: [] },
      facts?.exits.all ?? [],
    ),
    page: facts ? workspacePagePath(facts.id) : null,
  };
}

type Condition = (
  present: Pick<AppServerRecord, 'state' | 'lastError'> & Partial<Pick<StoredWorkspace, 'rest'>>,
) => ReturnType<typeof conditionOf>;

/** The record of a workspace that a process of another home owns. The workspace's own file gives no pid to a record. */
function ownedRecord(
  record: AppServerRecord,
  { mutexPath }: WorkspaceFiles,
  owner: UnpublishedHolder,
  condition: Condition,
): AppServerRecord {
  const lastError = ownedMessage(owner);
  const present = { state: 'unhealthy', lastError } as const;
  const rest = { kind: 'workspaceLocked', message: lastError };
  return {
    ...record,
    ...present,
    phase: 'unhealthy',
    pid: lockHolder(mutexPath),
    incident: null,
    ...condition({ ...present, rest }),
  };
}

/**
 * The record of a workspace that this Hub does not run, looked up without changing anything: at rest, or run by a server
 * that another program started and that answers `initialize`.
 */
export async function inspectUnmanaged(
  hub: HubServices,
  path: WorkspacePath,
  known: AppServerRecord | undefined,
): Promise<AppServerRecord> {
  const record = known ?? restingRecord(hub, path);
  const condition: Condition = (present) =>
    conditionOf({ ...unmanaged, ...present }, null, settingsOf(hub, path.canonical));
  const files = workspaceFiles(hub.home, path.canonical);
  if (probeLock(files.mutexPath) !== 'held') return record;
  const owner = foreignHolder(files);
  if (owner) return ownedRecord(record, files, owner, condition);
  const read = readAppServer(files);
  if (read.kind !== 'ok' || isAlive(read.value.identity) !== 'alive') return record;
  const lock = read.value;
  try {
    const { version } = await introduce(
      lock.endpoints.appServerWebSocket,
      'oratorio-hub',
      defaults.supervise.probeTimeoutMs,
    );
    const services = Object.entries(lock.endpoints).map(([name, url]) => [
      name,
      { state: 'external', url, reason: lock.serviceNotes?.[name] ?? null },
    ]);
    return {
      ...record,
      state: 'running',
      phase: 'running',
      incident: null,
      pid: lock.pid,
      endpoints: { ...lock.endpoints },
      serviceStatus: Object.fromEntries(services),
      serverVersion: version,
      startedByHub: false,
      lastStartedAt: lock.startedAt,
      lastError: null,
      exitCode: null,
      ...condition({ state: 'running', lastError: null }),
    };
  } catch (error) {
    const reason = messageOf(error);
    hub.logger.debug('the owner of a workspace lock does not answer', { workspacePath: path.canonical, reason });
    const lastError = `Process ${lock.pid} owns the workspace lock and does not answer: ${reason}`;
    return {
      ...record,
      state: 'unhealthy',
      phase: 'unhealthy',
      incident: null,
      pid: lock.pid,
      lastError,
      ...condition({ state: 'unhealthy', lastError }),
    };
  }
}
