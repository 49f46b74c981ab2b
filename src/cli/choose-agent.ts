import { ConfigError, chooseAgent as writeAgent } from '../config/index.ts';
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

/** Makes this agent do the turns of a workspace. The caller has checked the name. @throws CliError */
export function chooseAgent({ output, home }: CommandContext, path: string, name: string): void {
  const workspace = canonical(path);
  try {
    const choice = writeAgent({ home, workspace }, name === own ? undefined : name);
    if (choice === 'unchanged') return;
    if (choice === 'restricted')
      output.warn(
        `${workspace} is restricted: its agent holds once you trust it (oratorio trust ${quoted(workspace)}).`,
      );
  } catch (error) {
    if (error instanceof ConfigError) throw invalidConfig(error);
    throw error;
  }
  output.line(`${output.colors.green('✔')} ${name} does the turns of ${workspace}`);
}
