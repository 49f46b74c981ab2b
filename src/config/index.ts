/**
 * Settings: one schema, two files, one merged and validated result; and what makes a directory a workspace. Called by the
 * Hub, the agent server and the commands. Never here: what the settings are used for, command-line options, secrets of our
 * own making (tokens, keys: those are in lock files and launch documents).
 */
export {
  ConfigChangeError,
  type ConfigIssue,
  type ConfigPlace,
  type ConfigSource,
  type PlannedChange,
  planChange,
  workspaceSource,
} from './change.ts';
export { ConfigError, type ConfigProblem } from './error.ts';
export { directoryName, homeDirectory, userConfigFile, workspaceConfigFile } from './home.ts';
export { InitError, type InitialisedWorkspace, initWorkspace } from './init.ts';
export { setMember } from './json-edit.ts';
export { configJsonSchema, settingsJsonSchema } from './json-schema.ts';
export { type Layer, mergeDeep } from './layers.ts';
export { type LoadedConfig, type LoadOptions, loadConfig, referencedVariables, resolveConfig } from './load.ts';
export { Config, isLoopback, toolNames } from './schema.ts';
export { type ShownConfig, showConfig } from './view.ts';
