import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { ConfigError, loadConfig, workspaceAbove } from '../../config/index.ts';
import { plainText } from '../../lib/index.ts';
import { JsonRpcError } from '../../rpc/index.ts';
import type { CommandContext } from '../command.ts';
import { CliError, invalidConfig, usageError } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { canonical, isWorkspace } from '../workspace.ts';

/** `oratorio login --agent name`: asks an external agent to log its user in. @throws CliError */
export async function logInToAgent(context: CommandContext, name: string): Promise<number> {
  const { env, home, output, signal, options } = context;
  const { AgentLoginError, logInToAgent: logIn, ...external } = await import('../../external/index.ts');
  const { Agent, Supervision } = await configHere(context);
  const listed = external.registryAgents.find(({ id }) => id === name);
  const isConfigured = Agent.Name === name;
  if (!isConfigured && !listed && !external.presetFor(name))
    throw usageError(`There is no agent ${name}. See: oratorio agents`, 'login');
  const progress = output.progress(`Waiting for ${name}`);
  try {
    const login = await logIn({
      agent: isConfigured
        ? Agent
        : { Name: name, Command: listed ? external.registryCommand(listed) : [], Env: listed?.env ?? {} },
      ...{ env, signal, cwd: home },
      passEnvironment: Supervision.PassEnvironment,
      method: typeof options['method'] === 'string' ? options['method'] : undefined,
      onBug: (error) => {
        throw error;
      },
    });
    progress.stop();
    if (login.kind === 'terminal') return await inTerminal(login.command, login.env);
    output.line(`${output.colors.green('✔')} ${name}: ${plainText(login.method)}`);
    return exitCodes.ok.code;
  } catch (error) {
    if (!(error instanceof AgentLoginError || error instanceof JsonRpcError)) throw error;
    throw new CliError('failure', `${name} did not log you in: ${plainText(error.message)}`, 'See: oratorio agents');
  } finally {
    progress.stop();
  }
}

/** Settings of the workspace that contains the current directory, or else the user's settings. @throws CliError */
async function configHere({ cwd, env, home }: CommandContext) {
  const here = cwd !== undefined && isWorkspace(cwd, home) ? canonical(cwd) : undefined;
  const workspace = here ?? (cwd === undefined ? undefined : workspaceAbove(cwd, { home }));
  try {
    return (await loadConfig({ home, env, ...(workspace !== undefined && { workspace }) })).config;
  } catch (error) {
    if (error instanceof ConfigError) throw invalidConfig(error);
    throw error;
  }
}

/** Runs the agent's own log-in with this terminal. @returns its exit code */
async function inTerminal([program = '', ...args]: readonly string[], env: Readonly<Record<string, string>>) {
  const child = spawn(program, args, { env, stdio: 'inherit' });
  const [code] = await once(child, 'exit');
  return code === 0 ? exitCodes.ok.code : exitCodes.failure.code;
}
