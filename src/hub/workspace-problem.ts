import { ConfigError, findWorkspace, loadConfig, WorkspaceError } from '../config/index.ts';
import type { HubServices } from './facts.ts';

/** Reason why a workspace cannot be started: not this user's, or settings that cannot be used. */
export interface WorkspaceProblem {
  readonly kind: 'workspaceGone' | 'invalidConfig';
  readonly message: string;
}

/** @returns the problem, for `lastError`; undefined when nothing is wrong */
export function workspaceProblem(
  { home, environment }: HubServices,
  canonicalPath: string,
): WorkspaceProblem | undefined {
  try {
    findWorkspace(canonicalPath, { home });
    loadConfig({ home, workspace: canonicalPath, env: environment });
    return undefined;
  } catch (error) {
    if (error instanceof WorkspaceError) return { kind: 'workspaceGone', message: error.message };
    if (error instanceof ConfigError) return { kind: 'invalidConfig', message: error.message };
    throw error;
  }
}
