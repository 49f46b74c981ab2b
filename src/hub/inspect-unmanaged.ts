import { basename } from 'node:path';
import { messageOf } from '../lib/index.ts';
import { type AppServerRecord, defaults } from '../protocol/index.ts';
import { isAlive, probeLock, readAppServer, workspaceFiles } from '../supervise/index.ts';
import type { HubServices } from './facts.ts';
import { introduce } from './probe.ts';
import { conditionOf } from './record.ts';
import type { WorkspacePath } from './workspace-path.ts';
import { settingsOf } from './workspace-settings.ts';

/** A server that this Hub does not manage reports nothing to it. */
const unmanaged = { isOurs: false, incarnation: null, serviceNotes: [] } as const;

function restingRecord(hub: HubServices, { requested, canonical }: WorkspacePath): AppServerRecord {
  const settings = settingsOf(hub, canonical);
  const { trust, restrictedSettings } = settings;
  return {
    workspacePath: requested,
    canonicalWorkspacePath: canonical,
    state: 'stopped',
    pid: null,
    endpoints: {},
    serviceStatus: {},
    serverVersion: null,
    startedByHub: false,
    exitCode: null,
    lastError: null,
    recentStderr: null,
    displayName: basename(canonical),
    phase: 'stopped',
    adopted: false,
    incarnation: 0,
    restartCount: 0,
    nextAttemptAt: null,
    lastStartedAt: null,
    lastExitedAt: null,
    trust,
    restrictedSettings: [...restrictedSettings],
    ...conditionOf({ ...unmanaged, state: 'stopped', lastError: null }, null, settings),
    page: null,
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
  const condition = (present: Pick<AppServerRecord, 'state' | 'lastError'>) =>
    conditionOf({ ...unmanaged, ...present }, null, settingsOf(hub, path.canonical));
  const files = workspaceFiles(hub.home, path.canonical);
  if (probeLock(files.mutexPath) !== 'held') return record;
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
      pid: lock.pid,
      lastError,
      ...condition({ state: 'unhealthy', lastError }),
    };
  }
}
