import type { RecordAnswer } from '../client/index.ts';
import { restrictionWarning, workspaceTrust } from '../config/index.ts';
import type { CommandContext } from './command.ts';
import type { Output } from './output.ts';
import { canonical } from './workspace.ts';

/** Warns on standard error that settings of a workspace are ignored, and names the command that allows them. */
export function warnRestricted(
  output: Output,
  { canonicalWorkspacePath, restrictedSettings }: Pick<RecordAnswer, 'canonicalWorkspacePath' | 'restrictedSettings'>,
): void {
  if (restrictedSettings.length > 0) output.warn(restrictionWarning(canonicalWorkspacePath, restrictedSettings));
}

/** Warns like `warnRestricted`, for commands that serve a workspace without the Hub. */
export function warnIfRestricted({ output, home }: Pick<CommandContext, 'output' | 'home'>, workspace: string): void {
  const canonicalWorkspacePath = canonical(workspace);
  const { restrictedSettings } = workspaceTrust({ home, workspace: canonicalWorkspacePath });
  warnRestricted(output, { canonicalWorkspacePath, restrictedSettings: [...restrictedSettings] });
}
