import {
  ConfigError,
  readWorkspaceSettings,
  requestedSettings,
  trustWorkspace,
  workspaceSource,
  workspaceTrust,
} from '../config/index.ts';
import { setMember, writeFileAtomic } from '../lib/index.ts';
import type { CommandContext } from './command.ts';
import { CliError, invalidConfig, quoted, usageError } from './errors.ts';
import { canonical } from './workspace.ts';

/** Name of the product's own agent. */
const own = 'oratorio';

/**
 * Checks the name of `oratorio up --agent name`, before anything is made.
 *
 * @throws CliError for an agent that is unknown or not installed
 */
export async function checkAgent({ env }: CommandContext, name: string): Promise<void> {
  const { findAgentCommand, installHintOf, presetFor, presetNames } = await import('../external/index.ts');
  const preset = presetFor(name);
  if (!preset && name !== own) {
    throw usageError(`There is no agent ${name}. Agents: ${[own, ...presetNames].join(', ')}.`, 'up');
  }
  if (preset && !findAgentCommand(preset.program, env['PATH'] ?? '')) {
    throw new CliError('failure', `${name} is not installed.`, installHintOf(preset), 'agentNotInstalled');
  }
}

/**
 * Makes this agent do the turns of a workspace: writes its name into the workspace's own file. A workspace that is trusted, or that
 * asks for nothing else, stays trusted, because the user requested this change. The caller has checked the name.
 */
export function chooseAgent({ output, home }: CommandContext, path: string, name: string): void {
  const workspace = canonical(path);
  const wasTrusted = workspaceTrust({ home, workspace }).trust === 'trusted' || requestedSettings(workspace).size === 0;
  try {
    const source = workspaceSource(workspace);
    const before = source.text?.trim() ? source.text : '{}\n';
    // Settings are found in any case.
    const key = Object.keys(readWorkspaceSettings(workspace) ?? {}).find((each) => /^agent$/i.test(each)) ?? 'Agent';
    const text = setMember(before, [key, 'Name'], name === own ? undefined : name);
    if (text === source.text) return;
    writeFileAtomic(source.file, text);
  } catch (error) {
    if (error instanceof ConfigError) throw invalidConfig(error);
    throw error;
  }
  if (wasTrusted) trustWorkspace({ home, workspace }, requestedSettings(workspace));
  else
    output.warn(`${workspace} is restricted: its agent holds once you trust it (oratorio trust ${quoted(workspace)}).`);
  output.line(`${output.colors.green('✔')} ${name} does the turns of ${workspace}`);
}
