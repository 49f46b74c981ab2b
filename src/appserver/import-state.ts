import { lstatSync } from 'node:fs';
import { join } from 'node:path';
import { importHistory, StorageError } from '../agent/index.ts';
import type { LoadedConfig } from '../config/index.ts';
import { fileFault, writeFileAtomic } from '../lib/index.ts';
import type { Logger } from '../log/index.ts';
import type { HeldWorkspace } from './workspace.ts';

/**
 * Imports the history of a workspace's own `.oratorio/state.db`, where 0.1.0 stored it, into the user's state: once, when the
 * workspace is trusted. The old file stays unchanged. A process killed at any moment leaves work that the next start repeats.
 * Never throws for the content of the old file: the agent server starts without that history.
 */
export function importOldState(
  { path, directory, stateDirectory }: Pick<HeldWorkspace, 'path' | 'directory' | 'stateDirectory'>,
  trust: LoadedConfig['trust'],
  logger: Logger,
): void {
  const from = join(directory, 'state.db');
  const marker = join(stateDirectory, 'imported.json');
  if (exists(marker)) return;
  const isOld = exists(from);
  if (trust === 'restricted') {
    if (isOld) {
      logger.info('did not import the history in this workspace, which is not trusted; to import it: oratorio trust', {
        file: from,
      });
    }
    return;
  }
  const note = (imported: object) =>
    writeFileAtomic(marker, `${JSON.stringify({ version: 1, at: new Date().toISOString(), ...imported }, null, 2)}\n`);
  try {
    // A file that appears later comes with a commit: it is not this user's history.
    if (!isOld) {
      note({ from: null });
      return;
    }
    const fault = fileFault(from);
    if (fault) throw new StorageError('corrupt', fault.message, { cause: fault });
    const { threads, traceSessions, automations } = importHistory({ from, into: stateDirectory, workspacePath: path });
    note({ from, threads, traceSessions, automations: automations.length });
    logger.info('imported the history of this workspace; the old file is not used any more and can be deleted', {
      file: from,
      threads,
      traceSessions,
    });
    if (automations.length > 0) {
      logger.warn('imported jobs and tasks are switched off; to enable one: oratorio cron enable <id>', {
        automations,
      });
    }
  } catch (error) {
    if (!(error instanceof StorageError)) throw error;
    logger.warn('could not import the history of this workspace; the next start tries again', {
      file: from,
      reason: error.message,
    });
  }
}

const exists = (file: string): boolean => lstatSync(file, { throwIfNoEntry: false }) !== undefined;
