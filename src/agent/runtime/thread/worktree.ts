import { realpathSync, statSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import type { PinnedDirectory } from '../../../lib/index.ts';
import type { ThreadConfig } from '../../../protocol/index.ts';
import { AgentError } from '../../errors.ts';
import { isWithin } from '../../tools/index.ts';

/**
 * Finds the directory of a `workspaceOverride`.
 *
 * @param given path from the client
 * @param roots absolute paths; the directory must be below one of them
 * @returns the real path
 * @throws AgentError workspaceOverrideRefused
 */
function findWorktree(given: string, roots: readonly string[]): string {
  if (!isAbsolute(given) || given.includes('\0')) throw refused('notAbsolute', 'it must be an absolute path');
  const path = realPathOf(given);
  if (path === undefined || !statSync(path, { throwIfNoEntry: false })?.isDirectory()) {
    throw refused('notADirectory', 'there is no such directory');
  }
  const isBelow = roots.some((root) => {
    const real = realPathOf(root);
    return real !== undefined && path !== real && isWithin(real, path);
  });
  if (!isBelow) throw refused('outsideRoots', 'it is not below a worktree root of this server');
  return path;
}

/** The configuration of a thread with the real path of its `workspaceOverride`. @throws AgentError workspaceOverrideRefused */
export function withRealPath(config: ThreadConfig, roots: readonly string[]): ThreadConfig {
  const { workspaceOverride } = config;
  if (workspaceOverride === undefined) return config;
  return { ...config, workspaceOverride: findWorktree(workspaceOverride, roots) };
}

/**
 * @param workspace of the server; undefined: not pinned
 * @param path directory in which the work is done
 * @throws AgentError workspaceLost
 */
export function requireWorkspace(workspace: PinnedDirectory | undefined, path = workspace?.path): void {
  if (!workspace || path === undefined) return;
  const loss = workspace.lossOf(path);
  if (!loss) return;
  const lost = workspace.loss ? workspace.path : path;
  throw new AgentError('workspaceLost', { path: lost, kind: loss.kind }, loss.message);
}

/** Refuses a change of the directory or the agent of a thread, and an end of its read-only mode. @throws AgentError workspaceOverrideRefused */
export function requireSamePlace(present: ThreadConfig | undefined, wanted: ThreadConfig): void {
  const isSame = wanted.workspaceOverride === present?.workspaceOverride && wanted.agent === present?.agent;
  if (isSame && (wanted.readOnly === true || present?.readOnly !== true)) return;
  throw refused('decided', 'where a thread works, its agent, and that it only reads, is decided when it starts');
}

const refused = (reason: string, detail: string): AgentError =>
  new AgentError('workspaceOverrideRefused', { reason }, detail);

/** Real path; undefined when it cannot be resolved. */
function realPathOf(path: string): string | undefined {
  try {
    return realpathSync.native(path);
  } catch {
    // Missing, a loop of links, no permission: unusable for a turn.
    return undefined;
  }
}
