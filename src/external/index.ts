/**
 * External agents, driven over the Agent Client Protocol: one supervised process for a workspace, whose sessions are
 * threads. The machine `external-agent` decides about the process; the agent's updates become items of the turn, and its questions
 * become approvals of the thread. Never here: items, approvals and stores themselves (`agent`).
 */
export { type AgentConfiguration, type ConfigureOptions, configuredAgent } from './configure.ts';
export { ExternalAgent, type ExternalAgentOptions } from './external-agent.ts';
export { type AgentFailureCode, agentFailureCodes } from './failure.ts';
export { type AgentLogin, AgentLoginError, logInToAgent } from './log-in.ts';
export {
  findAgentCommand,
  installHintOf,
  type Preset,
  type PresetName,
  presetFor,
  presetNames,
  presets,
} from './presets.ts';
export {
  agentsIn,
  RegistryAgent,
  registryAgents,
  registryCommand,
  registryDate,
  registryInstallHint,
} from './registry.ts';
