import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fromPromise } from 'xstate';
import type { OfWorkspace, Preparation } from '../../../machines/index.ts';
import { AppServerLock, defaults } from '../../protocol/index.ts';
import { isAlive, killGroupVerified, killMarked, probeLock, readJson } from '../../supervise/index.ts';
import type { FactsOf, HubServices, WorkspaceFacts } from '../facts.ts';
import { StartError } from '../failure.ts';
import { introduce } from '../probe.ts';
import type { StoredProcess } from '../store.ts';
import { planLaunch } from './plan-launch.ts';

/** How long the holder of the lock may take to publish its address: it may just be starting. */
const publishDeadlineMs = 10_000;
const publishPollMs = 25;

export interface WorkspaceFiles {
  readonly lockPath: string;
  readonly mutexPath: string;
}

/** The two files by which an agent server owns a workspace: the OS lock, and the address it publishes. */
export function workspaceFiles(workspacePath: string): WorkspaceFiles {
  const directory = join(workspacePath, '.oratorio');
  return { lockPath: join(directory, 'appserver.lock'), mutexPath: join(directory, 'appserver.mutex') };
}

function locked(facts: WorkspaceFacts, pid: number | null, lockPath: string, why: string): StartError {
  facts.lockOwner = { pid, lockPath };
  const owner = pid === null ? 'A live process' : `Process ${pid}`;
  return new StartError('workspaceLocked', `${owner} owns the workspace lock ${why}.`, false);
}

/** Waits until the holder of the OS lock has published its address, or has gone. */
async function publishedLock(files: WorkspaceFiles, signal: AbortSignal): Promise<AppServerLock | 'free' | 'silent'> {
  for (let waited = 0; waited <= publishDeadlineMs; waited += publishPollMs) {
    const read = readJson(files.lockPath, AppServerLock);
    if (read.kind === 'ok' && isAlive(read.value.identity) !== 'gone') return read.value;
    if (probeLock(files.mutexPath) === 'free') return 'free';
    await sleep(publishPollMs, undefined, { signal });
  }
  return 'silent';
}

/** Takes over the addresses of a server that is already there. */
function takeOver(facts: WorkspaceFacts, lock: AppServerLock): void {
  facts.endpoints = { ...lock.endpoints };
  facts.services = {};
  for (const url of Object.values(lock.endpoints)) {
    for (const token of new URL(url).searchParams.getAll('token')) facts.secrets.add(token);
  }
  facts.marker = lock.incarnation;
  facts.lockOwner = null;
  facts.stored.server = { marker: lock.incarnation ?? '', identity: lock.identity };
}

/** The workspace lock is held: by a server of ours that an earlier Hub left, by a stranger that answers, or by one that does not. */
async function meetOwner(
  hub: HubServices,
  facts: WorkspaceFacts,
  files: WorkspaceFiles,
  signal: AbortSignal,
): Promise<Preparation | null> {
  const lock = await publishedLock(files, signal);
  if (lock === 'free') return null;
  if (lock === 'silent') throw locked(facts, null, files.lockPath, 'and does not publish an address');
  const { canonicalWorkspacePath } = facts.stored;
  const isOurs = hub.credentials.verifiesAdoption(canonicalWorkspacePath, lock.adoptionProof);
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
  takeOver(facts, lock);
  return { ownership: isOurs ? 'adopted' : 'external', ports: [] };
}

/** Nobody holds the workspace lock, so what is left of an earlier start serves nobody. */
export async function endLeftovers({ identity, marker }: StoredProcess): Promise<void> {
  if (identity) await killGroupVerified(identity, marker);
  else await killMarked(marker);
}

/**
 * The `prepare` actor: looks who owns the workspace; when nobody does, ends what a crash may have left, plans ports and
 * tokens, and has the intention on disk before anything is spawned.
 */
export function prepare(hub: HubServices, factsOf: FactsOf) {
  return fromPromise<Preparation, OfWorkspace & { readonly mayStart: boolean }>(async ({ input, signal }) => {
    const facts = factsOf(input.workspacePath);
    const { stored } = facts;
    const files = workspaceFiles(stored.canonicalWorkspacePath);
    const owner = probeLock(files.mutexPath);
    if (owner === 'unknown') throw locked(facts, null, files.lockPath, 'or it cannot be read');
    if (owner === 'held') {
      const preparation = await meetOwner(hub, facts, files, signal);
      if (preparation) return preparation;
    }
    if (stored.server) await endLeftovers(stored.server);
    if (!input.mayStart) {
      stored.server = null;
      throw new StartError('crashed', 'The agent server ended while no Hub was watching.', false);
    }
    const marker = randomUUID();
    const plan = await planLaunch(hub, facts, marker);
    signal.throwIfAborted();
    stored.server = { marker, identity: null };
    facts.lockOwner = null;
    await hub.save();
    return { ownership: 'managed', ports: plan.ports, policy: plan.policy };
  });
}
