import { findWorkspace, WorkspaceError } from '../config/index.ts';
import { goneWorkspace } from './moved-workspace.ts';
import type { StoredWorkspace } from './store.ts';
import type { SettingsView } from './workspace-settings.ts';

/** Reason why a workspace cannot be started: not this user's, or settings that cannot be used. */
export interface WorkspaceProblem {
  readonly kind: 'workspaceGone' | 'invalidConfig';
  readonly message: string;
}

/** @returns the problem, for `lastError`; undefined when nothing is wrong */
export function workspaceProblem(
  home: string,
  stored: StoredWorkspace,
  settings: SettingsView,
): WorkspaceProblem | undefined {
  try {
    findWorkspace(stored.canonicalWorkspacePath, { home });
  } catch (error) {
    if (!(error instanceof WorkspaceError)) throw error;
    const message = error.fault === 'missing' ? goneWorkspace(stored).message : error.message;
    return { kind: 'workspaceGone', message };
  }
  const { problem } = settings.now();
  return problem === null ? undefined : { kind: 'invalidConfig', message: problem.message };
}
