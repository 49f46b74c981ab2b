import { type ChosenAgent, ConfigError, chooseAgent as writeAgent } from '../config/index.ts';
import type { CommandContext } from './command.ts';
import { CliError, invalidConfig, quoted, usageError } from './errors.ts';
import { canonical } from './workspace.ts';

/** Name of the product's own agent. */
const own = 'oratorio';

/**
 * Checks the name of `oratorio up --agent name`, before anything is made.
 *
 * @returns the agent; undefined: our own
 * @throws CliError for an agent that is unknown or not installed
 */
export async function agentNamed({ env }: CommandContext, name: string): Promise<ChosenAgent | undefined> {
  if (name === own) return undefined;
  const external = await import('../external/index.ts');
  const { findAgentCommand, installHintOf, presetFor, presetNames, registryAgents } = external;
  const preset = presetFor(name);
  const listed = registryAgents.find(({ id }) => id === name);
  if (!preset && !listed) {
    const names = [own, ...presetNames].join(', ');
    throw usageError(`There is no agent ${name}. Agents: ${names}, and those of the registry (oratorio agents).`, 'up');
  }
  const command = listed && external.registryCommand(listed);
  const program = preset?.program ?? command?.[0] ?? name;
  if (!findAgentCommand(program, env['PATH'] ?? '')) {
    const hint = preset ? installHintOf(preset) : listed && external.registryInstallHint(listed);
    throw new CliError('failure', `${name} is not installed.`, hint, 'agentNotInstalled');
  }
  const variables = Object.keys(listed?.env ?? {}).length > 0 ? listed?.env : undefined;
  return { name, ...(command && { command }), ...(variables && { env: variables }) };
}

/** Makes this agent do the turns of a workspace. @throws CliError */
export function chooseAgent({ output, home }: CommandContext, path: string, agent: ChosenAgent | undefined): void {
  const workspace = canonical(path);
  try {
    const choice = writeAgent({ home, workspace }, agent);
    if (choice === 'unchanged') return;
    if (choice === 'restricted')
      output.warn(
        `${workspace} is restricted: its agent holds once you trust it (oratorio trust ${quoted(workspace)}).`,
      );
  } catch (error) {
    if (error instanceof ConfigError) throw invalidConfig(error);
    throw error;
  }
  output.line(`${output.colors.green('✔')} ${agent?.name ?? own} does the turns of ${workspace}`);
}
