import type { RestartPolicy } from '../../machines/index.ts';
import type { Logger } from '../log/index.ts';
import { defaults } from '../protocol/index.ts';
import { childEnvironment, markerVariable } from '../supervise/index.ts';
import { ExternalAgent, type ExternalAgentOptions } from './external-agent.ts';
import { isUnasked } from './hosted-models.ts';
import { findAgentCommand, installHintOf, type PresetName, presetFor } from './presets.ts';
import { dialects, exportsElsewhere } from './telemetry/dialects.ts';

/** `Agent` of the configuration. */
export interface AgentConfiguration {
  readonly Name: string;
  readonly Command: readonly string[];
  readonly Env: Readonly<Record<string, string>>;
}

export interface AgentProcessOptions {
  readonly agent: AgentConfiguration;
  /** Our environment, with the marker of this start; the agent's process inherits part of it. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly passEnvironment: readonly string[];
}

export interface ConfigureOptions
  extends AgentProcessOptions,
    Pick<
      ExternalAgentOptions,
      'workspacePath' | 'records' | 'protect' | 'observe' | 'mcpServers' | 'files' | 'commands'
    > {
  readonly restartPolicy: RestartPolicy;
  readonly logger: Logger;
}

/** Hint for a missing program: a server inherits the search path of its Hub, which may be older than the program. */
const olderPath = 'If it is installed, the Hub was started with an earlier PATH: oratorio hub stop, then start again.';

/** Program, arguments and whole environment of an agent's process. */
export function agentProcess({ agent, env, passEnvironment }: AgentProcessOptions) {
  const preset = presetFor(agent.Name);
  const [program = preset?.program ?? agent.Name, ...ownArgs] = agent.Command;
  const args = agent.Command.length > 0 ? ownArgs : (preset?.args ?? []);
  const found = findAgentCommand(program, env['PATH'] ?? '');
  return {
    name: agent.Name || program,
    preset,
    isFound: found !== undefined,
    command: [...(found ?? [program]), ...args],
    env: childEnvironment(env, {
      pass: [...passEnvironment, ...(preset?.passes ?? [])],
      add: { ...preset?.env, ...agent.Env },
    }),
  };
}

/** The configured agent of a workspace. It is started with the first turn. */
export function configuredAgent({
  agent,
  env,
  passEnvironment,
  restartPolicy,
  ...rest
}: ConfigureOptions): ExternalAgent {
  const { name, preset, isFound, command, env: own } = agentProcess({ agent, env, passEnvironment });
  const { handshakeMs, closeGraceMs, cancelGraceMs } = defaults.externalAgent;
  const dialect = preset && dialects[agent.Name as PresetName];
  return new ExternalAgent({
    ...rest,
    ...{ name, command, env: own },
    isRefused: (session) => preset?.hosted !== undefined && isUnasked(preset.hosted, session, own),
    // Without a preset nothing shows that it asks at all.
    mayUse: (mode) => !preset?.askingModes || preset.askingModes.includes(mode),
    // Any other option may switch the questions off.
    maySet: (category) => !preset?.askingModes || category === 'model_config',
    parentMarker: env[markerVariable],
    dialect: () =>
      dialect && !exportsElsewhere(dialect, own, [own['HOME'] ?? '', rest.workspacePath]) ? dialect : undefined,
    worker: preset?.worker,
    mcpServers: preset?.takesMcpServers === false ? () => [] : rest.mcpServers,
    loginHint: preset?.login,
    installHint: [preset ? `${installHintOf(preset)}.` : '', ...(isFound ? [] : [olderPath])].join(' ').trim(),
    policy: {
      ...restartPolicy,
      gracefulStopMs: closeGraceMs,
      killVerifyMs: defaults.supervise.killVerifyMs,
      handshakeTimeoutMs: handshakeMs,
      closeGraceMs,
      cancelGraceMs,
    },
  });
}
