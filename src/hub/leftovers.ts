import { rmSync } from 'node:fs';
import type { Logger } from '../log/index.ts';
import {
  endKept,
  endRecorded,
  keptDirectory,
  killGroupVerified,
  killMarked,
  probeLock,
  processRecords,
  workspaceFiles,
} from '../supervise/index.ts';
import type { HubServices } from './facts.ts';
import type { StoredProcess, StoredWorkspace } from './store.ts';

/**
 * Ends the remaining processes of an earlier start whose workspace lock is free. Resolves when no process that carries the
 * start's marker is left, or when the rest was not signalled because it is not proved to be ours.
 */
export async function endLeftovers(logger: Logger, { identity, marker }: StoredProcess): Promise<void> {
  if (!identity) return void (await killMarked(marker));
  const { uncertain } = await killGroupVerified(identity, marker);
  if (uncertain) reportUnverified(logger, identity.pid);
}

/**
 * Ends the remaining processes of external agents after the death of their agent server: by the identities that it recorded. Records
 * of a container are only removed: its processes ended with it, and its commands may write any identity of this machine.
 */
export async function endRecordedProcesses(
  { home, logger }: Pick<HubServices, 'home' | 'logger'>,
  { canonicalWorkspacePath, server }: Pick<StoredWorkspace, 'canonicalWorkspacePath' | 'server'>,
): Promise<void> {
  const records = processRecords(home, canonicalWorkspacePath);
  if (server?.container) return rmSync(records, { recursive: true, force: true });
  const processes = await endRecorded(records);
  if (processes > 0)
    logger.warn('ended remaining processes of an agent', { workspacePath: canonicalWorkspacePath, processes });
}

/** Ends the commands that wait for the next agent server of a workspace, because none comes. A running server has its own. */
export async function endWaitingCommands(
  { home, logger }: Pick<HubServices, 'home' | 'logger'>,
  canonicalWorkspacePath: string,
): Promise<void> {
  if (probeLock(workspaceFiles(home, canonicalWorkspacePath).mutexPath) === 'held') return;
  const processes = await endKept(keptDirectory(home, canonicalWorkspacePath));
  if (processes > 0) {
    logger.info('ended commands that waited for an agent server', { workspacePath: canonicalWorkspacePath, processes });
  }
}

/** Logs that a process was spared: another user's, or without the marker of our start. */
export const reportUnverified = (logger: Logger, pid: number): void =>
  logger.warn('did not signal a process that cannot be verified as ours; end it by hand if it should not run', { pid });
