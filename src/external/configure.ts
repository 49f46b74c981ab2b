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

export interface ConfigureOptions
  extends Pick<
    ExternalAgentOptions,
    'workspacePath' | 'records' | 'protect' | 'observe' | 'mcpServers' | 'files' | 'commands'
  > {
  readonly agent: AgentConfiguration;
  /** Our environment, with the marker of this start; the agent's process inherits part of it. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly passEnvironment: readonly string[];
  readonly restartPolicy: RestartPolicy;
  readonly logger: Logger;
}

/** The configured agent of a workspace. It is started with the first turn. */
export function configuredAgent({
  agent,
  env,
  passEnvironment,
  restartPolicy,
  ...rest
}: ConfigureOptions): ExternalAgent {
  const preset = presetFor(agent.Name);
  const [program = preset?.program ?? agent.Name, ...ownArgs] = agent.Command;
  const args = agent.Command.length > 0 ? ownArgs : (preset?.args ?? []);
  const { handshakeMs, closeGraceMs, cancelGraceMs } = defaults.externalAgent;
  const own = childEnvironment(env, {
    pass: [...passEnvironment, ...(preset?.passes ?? [])],
    add: { ...preset?.env, ...agent.Env },
  });
  const dialect = preset && dialects[agent.Name as PresetName];
  return new ExternalAgent({
    ...rest,
    name: agent.Name || program,
    command: [...(findAgentCommand(program, env['PATH'] ?? '') ?? [program]), ...args],
    env: own,
    isRefused: (session) => preset?.hosted !== undefined && isUnasked(preset.hosted, session, own),
    // Without a preset nothing shows that it asks at all.
    mayUse: (mode) => !preset?.askingModes || preset.askingModes.includes(mode),
    parentMarker: env[markerVariable],
    dialect: () =>
      dialect && !exportsElsewhere(dialect, own, [own['HOME'] ?? '', rest.workspacePath]) ? dialect : undefined,
    worker: preset?.worker,
    mcpServers: preset?.takesMcpServers === false ? () => [] : rest.mcpServers,
    loginHint: preset?.login ?? 'see its documentation',
    installHint: preset ? `${installHintOf(preset)}.` : '',
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
