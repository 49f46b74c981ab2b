import { randomUUID } from 'node:crypto';
import { fromPromise } from 'xstate';
import type { Preparation, PrepareInput } from '../../../machines/index.ts';
import { openWorkspace, WorkspaceError } from '../../config/index.ts';
import { type AppServerLock, defaults } from '../../protocol/index.ts';
import { isAlive, lockFault, probeLock, type WorkspaceFiles, workspaceFiles } from '../../supervise/index.ts';
import { addressOf, boundLock, containerOf, endContainers } from '../container.ts';
import type { FactsOf, HubServices, WorkspaceFacts } from '../facts.ts';
import { StartError } from '../failure.ts';
import { endLeftovers, endRecordedProcesses } from '../leftovers.ts';
import { directoryIdentity, goneWorkspace } from '../moved-workspace.ts';
import { introduce } from '../probe.ts';
import type { StoredContainer, StoredWorkspace } from '../store.ts';
import { ownedMessage, publishedLock } from '../workspace-files.ts';
import { planLaunch } from './plan-launch.ts';

function locked(facts: WorkspaceFacts, pid: number | null, lockPath: string, why: string): StartError {
  facts.lockOwner = { pid, lockPath };
  return new StartError('workspaceLocked', ownedMessage({ pid, why }), false);
}

/** The lock file cannot serve as one: another user's, a symlink, not an empty file. */
function unusable(facts: WorkspaceFacts, { mutexPath, lockPath }: WorkspaceFiles): StartError {
  facts.lockOwner = { pid: null, lockPath };
  const fault = lockFault(mutexPath) ?? 'cannot be read';
  const message = `The workspace lock ${mutexPath} cannot be used: it ${fault}. Remove it, then start again.`;
  return new StartError('workspaceLocked', message, false);
}

/** Ends the remaining processes of an earlier start. @throws StartError `placeUnavailable` when its container may still run */
async function endServer(hub: HubServices, { server, canonicalWorkspacePath }: StoredWorkspace): Promise<void> {
  if (server?.container) await endContainers(hub, addressOf(server.container), canonicalWorkspacePath);
  else if (server) await endLeftovers(hub.logger, server);
}

/** @throws StartError workspaceGone, when the directory is not, or is no longer, a workspace of this user */
async function checkWorkspace(hub: HubServices, { stored }: WorkspaceFacts): Promise<void> {
  try {
    openWorkspace(stored.canonicalWorkspacePath, { home: hub.home });
    stored.directory = directoryIdentity(stored.canonicalWorkspacePath);
  } catch (error) {
    if (!(error instanceof WorkspaceError)) throw error;
    await endServer(hub, stored);
    await endRecordedProcesses(hub, stored);
    stored.server = null;
    const message = error.fault === 'missing' ? goneWorkspace(stored).message : error.message;
    throw new StartError('workspaceGone', message, false);
  }
}

/** Services that a live server has published, with the reason when one listens elsewhere than asked for. */
function publishedServices({ endpoints, serviceNotes = {} }: AppServerLock): WorkspaceFacts['services'] {
  const published = Object.entries(endpoints).map(([name, url]) => [
    name,
    { state: 'running', url, reason: serviceNotes[name] ?? null },
  ]);
  return Object.fromEntries(published);
}

/** Takes over the addresses of a server that is already there. @param container absent: a process of this machine */
function takeOver(facts: WorkspaceFacts, lock: AppServerLock, isOurs: boolean, container?: StoredContainer): void {
  facts.endpoints = { ...lock.endpoints };
  facts.services = publishedServices(lock);
  for (const url of Object.values(lock.endpoints)) {
    for (const token of new URL(url).searchParams.getAll('token')) facts.secrets.add(token);
  }
  facts.marker = lock.incarnation;
  facts.lockOwner = null;
  facts.external = isOurs ? null : lock.identity;
  facts.stored.external = !isOurs;
  // The spawn precedes the publication of the address.
  if (facts.stored.server?.identity?.pid !== lock.identity.pid) facts.stored.lastStartedAt = lock.startedAt;
  // A report that was stored later is newer.
  if (isOurs && lock.report && facts.stored.report?.incarnation !== lock.incarnation) facts.stored.report = lock.report;
  // A server that no Hub of this user has started is not stored: a later Hub must not be able to signal it.
  const marker = lock.incarnation ?? '';
  if (container) facts.stored.server = { marker, identity: null, container };
  else facts.stored.server = isOurs ? { marker, identity: lock.identity } : null;
}

/** Published address of the lock's holder. Null: our container may run, and this is not its start, or not its ports. */
function ownAddress(
  { stored: { server } }: WorkspaceFacts,
  lock: AppServerLock,
  isOurs: boolean,
): AppServerLock | null {
  if (!server?.container) return lock;
  return isOurs && server.marker === lock.incarnation ? boundLock(server.container, lock) : null;
}

/**
 * Ends our container: its commands can write any address, and it would run on without a Hub that follows it. Its labels are the
 * engine's, so they count.
 *
 * @returns whether the lock is free now
 */
async function hasEndedImpostor(hub: HubServices, { stored }: WorkspaceFacts) {
  const { server, canonicalWorkspacePath } = stored;
  if (!server?.container) return false;
  await endServer(hub, stored);
  return probeLock(workspaceFiles(hub.home, canonicalWorkspacePath).mutexPath) !== 'held';
}

/** The workspace lock is held: by a server of ours that an earlier Hub left, by an external server that answers, or by one that does not. */
async function meetOwner(
  hub: HubServices,
  facts: WorkspaceFacts,
  files: WorkspaceFiles,
  signal: AbortSignal,
): Promise<Preparation | null> {
  const published = await publishedLock(files, signal);
  if (published === 'free') return null;
  const { canonicalWorkspacePath } = facts.stored;
  const isOurs =
    !('why' in published) && hub.credentials.verifiesAdoption(canonicalWorkspacePath, published.adoptionProof);
  const address = 'why' in published ? null : ownAddress(facts, published, isOurs);
  if (!address && (await hasEndedImpostor(hub, facts))) return null;
  if ('why' in published) throw locked(facts, published.pid, files.lockPath, published.why);
  // Without our container, another program holds the lock.
  const lock = address ?? published;
  if (lock.workspacePath !== canonicalWorkspacePath) {
    throw locked(facts, lock.pid, files.lockPath, `for another path, ${lock.workspacePath}`);
  }
  if (!isOurs) {
    await introduce(lock.endpoints.appServerWebSocket, 'oratorio-hub', defaults.supervise.probeTimeoutMs, signal).catch(
      (error: Error) => {
        throw locked(facts, lock.pid, files.lockPath, `and does not answer: ${error.message}`);
      },
    );
  }
  takeOver(facts, lock, isOurs, isOurs ? containerOf(hub, facts, lock) : undefined);
  const lost = await loseSidecar(hub, facts, false);
  await hub.save();
  const hasPlace = facts.stored.server?.container !== undefined;
  return { ownership: isOurs ? 'adopted' : 'external', ports: [], ...lost, ...(hasPlace && { hasPlace }) };
}

/** Finds the ended sidecar of an earlier Hub, once for each; `ends` ends a running one first. */
async function loseSidecar(hub: HubServices, { stored }: WorkspaceFacts, ends: boolean) {
  const { proxy } = stored;
  if (!proxy?.identity) return {};
  if (ends) await endLeftovers(hub.logger, proxy);
  if (isAlive(proxy.identity) !== 'gone') return {};
  stored.proxy = { ...proxy, identity: null };
  return { lostSidecarPid: proxy.identity.pid };
}

/** The failure of an adoption that finds nothing alive. A start that never had a process does not change the known reason. */
async function endedUnseen(hub: HubServices, facts: WorkspaceFacts): Promise<StartError> {
  const { stored } = facts;
  const { external, server } = stored;
  const lost = await loseSidecar(hub, facts, true);
  stored.server = null;
  stored.external = false;
  await hub.save();
  const pid = server?.identity?.pid;
  if (pid === undefined && !external)
    return new StartError('neverStarted', 'The agent server was not started before the Hub ended.', false, lost);
  const ended = { ...lost, ...(pid !== undefined && { pid }) };
  return new StartError('crashed', 'The agent server ended while no Hub was watching.', false, ended);
}

/**
 * The `prepare` actor: finds the owner of the workspace; without one, ends remaining processes of a crash, plans ports and
 * tokens, and writes the intention to disk before it spawns a process.
 */
export function prepare(hub: HubServices, factsOf: FactsOf) {
  return fromPromise<Preparation, PrepareInput>(async ({ input, signal }) => {
    const facts = factsOf(input.workspacePath);
    const { stored } = facts;
    facts.sidecar = facts.sidecars.get(input.sidecar);
    facts.stderrFrom = null;
    facts.lastStderr = null;
    await checkWorkspace(hub, facts);
    const files = workspaceFiles(hub.home, stored.canonicalWorkspacePath);
    const owner = probeLock(files.mutexPath);
    if (owner === 'unknown') throw unusable(facts, files);
    if (owner === 'held') {
      const preparation = await meetOwner(hub, facts, files, signal);
      if (preparation) return preparation;
    }
    await endServer(hub, stored);
    await endRecordedProcesses(hub, stored);
    if (!input.mayStart) throw await endedUnseen(hub, facts);
    stored.external = false;
    const marker = randomUUID();
    const plan = await planLaunch(hub, facts, marker);
    signal.throwIfAborted();
    stored.server = { marker, identity: null, ...(plan.container && { container: plan.container }) };
    facts.lockOwner = null;
    await hub.save();
    const hasPlace = plan.container !== undefined;
    return { ownership: 'managed', ports: plan.ports, policy: plan.policy, ...(hasPlace && { hasPlace }) };
  });
}
