/**
 * The settings of the review backend: `oratorio.config.json`, under the environment, with secrets from files; read, checked,
 * followed while it runs, shown without secrets, changed. Called by every part of the backend. Never here: the effect of a
 * setting, the settings of agent servers (`src/config`).
 */
export {
  changeSettings,
  type SettingsChangeCode,
  type SettingsChanged,
  SettingsChangeError,
  type SettingsChangeRequest,
} from './change.ts';
export { changedPaths, needsRestart } from './changes.ts';
export { diagnosticsOf, type SettingsDiagnostics } from './diagnostics.ts';
export type { Environment } from './environment.ts';
export { SettingsError, type SettingsProblem } from './error.ts';
export { type LoadedSettings, loadSettings, type SettingsPlace } from './load.ts';
export {
  type ConfiguredRepository,
  configuredRepositories,
  instanceOf,
  projectKey,
  repositoryKeyOf,
} from './repositories.ts';
export { BackendFile, BackendSettings, secretSettings } from './schema.ts';
export { type SettingsChange, SettingsSource, type SourceOptions } from './source.ts';
