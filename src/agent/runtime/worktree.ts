import { realpathSync, statSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import type { ThreadConfig } from '../../protocol/index.ts';
import { AgentError } from '../errors.ts';
import { isWithin } from '../tools/index.ts';

/**
 * Where a thread with a `workspaceOverride` works.
 *
 * @param given as the client wrote it
 * @param roots absolute; a directory below one of them may be worked in, the root itself may not
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

/** Where a thread works, and that it only reads, is decided once. @throws AgentError workspaceOverrideRefused */
export function requireSamePlace(present: ThreadConfig | undefined, wanted: ThreadConfig): void {
  const isSame = wanted.workspaceOverride === present?.workspaceOverride;
  if (isSame && (wanted.readOnly === true || present?.readOnly !== true)) return;
  throw refused('decided', 'where a thread works, and that it only reads, is decided when it starts');
}

const refused = (reason: string, detail: string): AgentError =>
  new AgentError('workspaceOverrideRefused', { reason }, detail);

/** Undefined when it cannot be found, for whatever reason. */
function realPathOf(path: string): string | undefined {
  try {
    return realpathSync.native(path);
  } catch {
    // Missing, a loop of links, no permission: no turn can work there.
    return undefined;
  }
}
