import { ConfigError, findWorkspace, loadConfig, WorkspaceError } from '../config/index.ts';
import type { HubServices } from './facts.ts';
import { goneWorkspace } from './moved-workspace.ts';
import type { StoredWorkspace } from './store.ts';

/** Reason why a workspace cannot be started: not this user's, or settings that cannot be used. */
export interface WorkspaceProblem {
  readonly kind: 'workspaceGone' | 'invalidConfig';
  readonly message: string;
}

/** @returns the problem, for `lastError`; undefined when nothing is wrong */
export function workspaceProblem(
  { home, environment }: HubServices,
  stored: StoredWorkspace,
): WorkspaceProblem | undefined {
  const { canonicalWorkspacePath: canonicalPath } = stored;
  try {
    findWorkspace(canonicalPath, { home });
    loadConfig({ home, workspace: canonicalPath, env: environment });
    return undefined;
  } catch (error) {
    if (error instanceof WorkspaceError) {
      const message = error.fault === 'missing' ? goneWorkspace(stored).message : error.message;
      return { kind: 'workspaceGone', message };
    }
    if (error instanceof ConfigError) return { kind: 'invalidConfig', message: error.message };
    throw error;
  }
}
