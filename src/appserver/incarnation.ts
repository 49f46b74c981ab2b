import { randomUUID } from 'node:crypto';
import type { Logger } from '../log/index.ts';
import type { AppServerLock, LaunchDocument } from '../protocol/index.ts';
import { endRecorded, isAlive, killMarked, markerVariable } from '../supervise/index.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Names this start in the environment of every process that it starts: the id from the Hub. Without such an id it is new,
 * below the id of an ancestor, if any has one.
 */
export function incarnationOf(launch: LaunchDocument | undefined, env: Environment): string {
  if (launch) return launch.incarnation;
  const parent = env[markerVariable];
  return parent ? `${parent}/${randomUUID()}` : randomUUID();
}

export const withIncarnation = (env: Environment, incarnation: string): Environment => ({
  ...env,
  [markerVariable]: incarnation,
});

/**
 * After a crash of the server, ends its remaining processes in this workspace: commands and MCP servers. Nothing is touched while
 * it is not certain that the server itself is dead. Call it with the workspace's lock held, before anything is served.
 */
export async function endLeftovers(
  predecessor: AppServerLock | undefined,
  records: string,
  logger: Logger,
): Promise<void> {
  const recorded = await endRecorded(records);
  if (recorded > 0) logger.warn('ended remaining processes of an agent', { processes: recorded });
  if (!predecessor?.incarnation) return;
  const { pid, identity, incarnation } = predecessor;
  if (isAlive(identity) !== 'gone') {
    logger.warn('the server before this one may still run; its processes are left alone', { pid });
    return;
  }
  const ended = await killMarked(incarnation);
  if (ended > 0) logger.warn('ended remaining processes of the server before this one', { pid, processes: ended });
}
