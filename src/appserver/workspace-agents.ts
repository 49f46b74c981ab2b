import { basename, join } from 'node:path';
import type { AnyActorRef } from 'xstate';
import { delegateCommands, delegateFiles } from '../agent/index.ts';
import { type Config, homeDirectory, isDelegated, restartPolicyOf, workspaceStateDirectory } from '../config/index.ts';
import { processRecords } from '../supervise/index.ts';
import type { AssemblyOptions } from './assembly-options.ts';
import { broughtServersForAgents, DelegatedAgent, mcpServersForAgents } from './delegated-agent.ts';
import { DelegatedAgents } from './delegated-agents.ts';
import { StartupError } from './startup-error.ts';

/** External agents that a workspace can use. */
export interface WorkspaceAgents {
  /** The one that does its turns; undefined: our own does. */
  readonly delegate: DelegatedAgent | undefined;
  readonly agents: DelegatedAgents;
}

/**
 * Starts none of them.
 *
 * @param toolSettings of our own tools, which these agents may ask for
 * @param protect takes a secret out of everything that is written from now on
 * @param serversOf MCP servers that a client has brought for a thread
 * @throws StartupError (config) for an agent without a name and a command
 */
export function agentsOfWorkspace(
  { workspacePath, config, env, logger, observe }: AssemblyOptions,
  toolSettings: Parameters<typeof delegateCommands>[0],
  protect: (secret: string) => void,
  serversOf: (threadId: string) => Config['McpServers'],
): WorkspaceAgents {
  const { Name, Command } = config.Agent;
  const title = Name || basename(Command[0] ?? '');
  if (isDelegated(config.Agent) && title === '') {
    throw new StartupError('config', 'Agent.Kind is "acp", but neither Agent.Name nor Agent.Command names an agent.');
  }
  const common = {
    ...{ workspacePath, env, logger, protect },
    records: processRecords(homeDirectory(env), workspacePath),
    passEnvironment: config.Supervision.PassEnvironment,
    restartPolicy: restartPolicyOf(config),
    mcpServers: (threadId: string) => [
      ...mcpServersForAgents(config.McpServers, env),
      ...broughtServersForAgents(serversOf(threadId)),
    ],
    files: delegateFiles({ ...toolSettings, maxFileBytes: config.Tools.File.MaxFileBytes }),
    commands: delegateCommands(toolSettings),
  };
  const observeAgent = (actor: AnyActorRef, name: string) =>
    observe(actor, { id: `agent/${name}`, machine: 'external-agent', title: name });
  const delegate = isDelegated(config.Agent)
    ? new DelegatedAgent({
        ...common,
        agent: config.Agent,
        offersFile: join(workspaceStateDirectory(homeDirectory(env), workspacePath), 'agent-offers.json'),
        observe: (actor) => observeAgent(actor, title),
      })
    : undefined;
  return {
    delegate,
    agents: new DelegatedAgents({ main: delegate, configured: config.Agent, common, observe: observeAgent }),
  };
}
