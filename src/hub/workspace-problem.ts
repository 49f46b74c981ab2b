import { ConfigError, loadConfig, openWorkspace, WorkspaceError } from '../config/index.ts';
import type { HubServices } from './facts.ts';

/**
 * Says why a workspace cannot be started as it is now: not this user's, or settings that cannot be used.
 *
 * @returns the problem, for `lastError`; undefined when nothing is wrong
 */
export function workspaceProblem({ home, environment }: HubServices, canonicalPath: string): string | undefined {
  try {
    openWorkspace(canonicalPath, { home });
    loadConfig({ home, workspace: canonicalPath, env: environment });
    return undefined;
  } catch (error) {
    if (error instanceof WorkspaceError || error instanceof ConfigError) return error.message;
    throw error;
  }
}
