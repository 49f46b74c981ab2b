/**
 * Settings: one schema, two files, one merged and validated result; and the rules for a workspace directory. Called by the
 * Hub, the agent server and the commands. Never here: the use of the settings, command-line options, secrets of our
 * own making (tokens, keys: those are in lock files and launch documents).
 */
export type { AgreementChanges, ChangedFile } from './agreement.ts';
export { carriedConfig } from './carried.ts';
export {
  ConfigChangeError,
  type ConfigIssue,
  type ConfigPlace,
  type ConfigSource,
  type PlannedChange,
  planChange,
  workspaceSource,
} from './change.ts';
export { type PlannedUserChange, planUserChange, type UserChange } from './change-user.ts';
export { type ChosenAgent, chooseAgent, isDelegated } from './choose-agent.ts';
export {
  type EditorServer,
  EditorServersError,
  editorServerAnswer,
  forgetEditorServers,
  storeEditorServerAnswer,
} from './editor-servers.ts';
export { ConfigError, type ConfigProblem, TrustError } from './error.ts';
export { furtherDirectory } from './further-directories.ts';
export {
  directoryName,
  forksDirectories,
  forksDirectory,
  forksName,
  generatedKeyFile,
  homeDirectory,
  userConfigFile,
  usualHome,
  workspaceConfigFile,
  workspaceKey,
  workspaceStateDirectory,
} from './home.ts';
export { type Hook, type HookEvent, type HookSettings, hookEvents } from './hook-settings.ts';
export { hasEarlierGitignore, InitError, type InitialisedWorkspace, initWorkspace, renewGitignore } from './init.ts';
export { configJsonSchema, settingsJsonSchema } from './json-schema.ts';
export { type Layer, mergeDeep, type Trust } from './layers.ts';
export {
  type LoadedConfig,
  type LoadOptions,
  loadConfig,
  referencedVariables,
  requireValid,
  resolveConfig,
  restrictionWarning,
  usableConfig,
  userLayers,
  workspaceLayer,
} from './load.ts';
export { LockedFileError } from './lock-file.ts';
export { type FactsOfModel, type NamedProvider, type ProviderKind, providerKinds } from './model-settings.ts';
export { changedFiles, type NamedFiles, namedFiles, startedFileRemedy } from './named-files.ts';
export {
  ensureStateDirectory,
  findWorkspace,
  isInitialised,
  type OpenedWorkspace,
  type OpenWorkspaceOptions,
  openWorkspace,
  WorkspaceError,
  type WorkspaceFault,
  workspaceAbove,
} from './open-workspace.ts';
export { readUserSettings, readWorkspaceSettings, readWorkspaceText } from './read-layer.ts';
export { requestLines } from './request-lines.ts';
export { apiApprovalPolicyOf, handOverMsOf, restartPolicyOf } from './restart-policy.ts';
export { PermissionRule, type RuleDecision, ruleDecisions } from './rule-settings.ts';
export { Config, extraToolNames, toolNames } from './schema.ts';
export { agentSecretsIn, isSecretName, secretsIn } from './secrets.ts';
export { filesOfServer, loadsCode } from './server-files.ts';
export { lineIn, settingPlaces } from './setting-places.ts';
export { sensitivePathOf, sensitivePaths, settingsTable } from './settings-table.ts';
export { quotedPath } from './shell-path.ts';
export {
  changeTrusted,
  requestedFiles,
  requestedSettings,
  revokeTrust,
  type TrustedWorkspace,
  type TrustPlace,
  trustedWorkspaces,
  trustWorkspace,
  type WorkspaceTrust,
  workspaceTrust,
} from './trust.ts';
export { type ReadTrust, readTrustFile, trustFile } from './trust-file.ts';
export { type TrustQuestion, trustConsequence, trustQuestion } from './trust-question.ts';
export { type ShownConfig, showConfig } from './view.ts';
