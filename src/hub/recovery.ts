/** Puts the workspaces of an earlier Hub under supervision again, and starts those with unfinished turns. */
import { isAtRest, isDecided } from '../../machines/index.ts';
import type { Logger } from '../log/index.ts';
import { isAlive } from '../supervise/index.ts';
import type { HubServices } from './facts.ts';
import { endLeftovers } from './leftovers.ts';
import type { Registry } from './registry.ts';
import type { StoredWorkspace, WorkspaceStore } from './store.ts';
import { unfinishedTurns } from './unfinished-turns.ts';
import type { Workspace } from './workspace.ts';
import { workspaceProblem } from './workspace-problem.ts';

/** Agent servers that the start of a Hub starts at a time. */
const concurrentStarts = 4;

/** A workspace of an earlier Hub. */
export interface Recovered {
  readonly isAdopted: boolean;
  /** The workspace, when its agent server may be started without a request. */
  readonly startable: Workspace | null;
}

interface RecoveryOptions {
  readonly registry: Registry;
  readonly services: HubServices;
  readonly store: WorkspaceStore;
}

/**
 * Puts every workspace that an earlier Hub knew under supervision before the first request is answered, so no request can start
 * a second server of a workspace. Returns a promise for each recovery.
 */
export function restoreKnown(
  { registry, services, store }: RecoveryOptions,
  logger: Logger,
): readonly Promise<Recovered>[] {
  const { workspaces, damage } = store.load();
  if (damage) {
    const text =
      'the list of known workspaces is damaged and starts empty; run oratorio in each workspace to add it again';
    logger.warn(text, { ...damage });
  }
  const recover = async (stored: StoredWorkspace): Promise<Recovered> => {
    const workspacePath = stored.canonicalWorkspacePath;
    try {
      const settings = registry.settingsView(workspacePath);
      const problem = workspaceProblem(services.home, stored, settings);
      const lastError = problem?.message;
      if (problem) logger.warn('a known workspace cannot be used', { workspacePath, lastError });
      // Only a user starts a server that was stopped or given up.
      const mayStart = !problem && !stored.stoppedByUser && stored.rest?.kind !== 'gaveUp';
      const { asleep } = stored;
      const fellAsleep = sleepingServer(stored);
      const known = {
        ...stored,
        ...(fellAsleep && { server: null }),
        ...(problem && { lastError: problem.message, rest: problem }),
      };
      const restored = registry.restore(known, settings);
      if (fellAsleep) await endLeftovers(logger, fellAsleep);
      const isAdopted = await adoptServer(registry, restored, logger);
      if (!isAdopted) registry.restoreGivingUp(restored);
      if (!isAdopted && !problem) registry.restoreSleep(restored, asleep);
      return { isAdopted, startable: mayStart && !isAdopted ? restored : null };
    } catch (error) {
      logger.error('a workspace could not be recovered', { workspacePath, error });
      return { isAdopted: false, startable: null };
    }
  };
  return workspaces.map(recover);
}

/** The agent server that had agreed to sleep when its Hub ended, and has ended since. */
function sleepingServer({ asleep, server }: StoredWorkspace): StoredWorkspace['server'] {
  const identity = server?.identity;
  return asleep && identity && isAlive(identity) === 'gone' ? server : null;
}

/** Adopts the agent server that an earlier Hub started, and ends a sidecar that was left without its server. */
async function adoptServer(registry: Registry, workspace: Workspace, logger: Logger): Promise<boolean> {
  const { server, external, proxy } = workspace.facts.stored;
  if (server || external || proxy?.identity) {
    registry.adopt(workspace);
    const { context } = await workspace.settled();
    const message = context.hasProcess ? 'adopted an agent server' : 'an agent server has ended meanwhile';
    logger.info(message, { workspacePath: workspace.path, pid: context.pid });
    if (context.hasProcess) return true;
  }
  if (proxy) await endLeftovers(logger, proxy);
  return false;
}

/**
 * Starts the agent servers of workspaces with unfinished turns, some at a time.
 *
 * @param signal aborted when the Hub stops
 * @returns number of adopted agent servers
 */
export async function resumeWorkspaces(
  recoveries: readonly Promise<Recovered>[],
  { home, logger }: Pick<HubServices, 'home' | 'logger'>,
  signal: AbortSignal,
): Promise<number> {
  const resume = async (workspace: Workspace): Promise<void> => {
    if (signal.aborted || !isAtRest(workspace.snapshot())) return;
    const turns = unfinishedTurns(home, workspace.path, logger);
    workspace.facts.turnsLeft = turns;
    // The started server ends turns that are too old to continue.
    if (turns.length === 0) return;
    const about = { workspacePath: workspace.path, turns: turns.length };
    logger.info('starting an agent server for its unfinished turns', about);
    workspace.send({ type: 'ENSURE' });
    await workspace.settled(isDecided);
  };
  let adopted = 0;
  const next = recoveries.values();
  const work = async (): Promise<void> => {
    for (const recovery of next) {
      const { isAdopted, startable } = await recovery;
      if (isAdopted) adopted += 1;
      if (startable) await resume(startable);
    }
  };
  await Promise.all(Array.from({ length: concurrentStarts }, work));
  return adopted;
}
