/**
 * The files of a stack as text: the composition and its overlay, the gateway's file, `.env`, the settings of the backend
 * and of the agent server. Pure: from choices to text and back. Called by the plan of `oratorio server`, by its doctor, and
 * by the script that makes the committed files of a manual setup. Never here: the disk, the engine, a prompt.
 */
export { acmeEmail } from './acme-email.ts';
export { agentConfig } from './agent-config.ts';
export {
  type ConfigAnswers,
  type Installation,
  newBackendConfig,
  type RepositoryEntry,
  readBackendConfig,
  type StackConfig,
  withRepository,
} from './backend-config.ts';
export { type CaddyfileOptions, type Certificates, caddyfile, gatewayText } from './caddyfile.ts';
export { composeFile } from './composition.ts';
export { containerPaths } from './container-paths.ts';
export { changeEnv, type EnvFile, parseEnv } from './env-file.ts';
export { secretsInEnv } from './env-secrets.ts';
export { type EnvFault, type EnvProblem, envFaults } from './env-statements.ts';
export { gitignore, marked, ownershipOf } from './marker.ts';
export { envExample, newEnv, variablesTable } from './new-env.ts';
export { overlayFile } from './overlay.ts';
export {
  type CheckedRepository,
  checkFullName,
  checkRepository,
  inDirectory,
  isSameRepository,
  type Repository,
  type RepositoryRefusal,
  repositoryNamed,
  repositoryOf,
  repositoryRefusals,
} from './repository.ts';
export {
  type CheckedSecret,
  checkSecretText,
  newSecret,
  type SecretRefusal,
  secretOf,
  secretRefusals,
} from './secret.ts';
export type { MountOptions } from './service.ts';
export { allVariables, isSecretVariable, projectNameOf, type Variable, type VariableName } from './variables.ts';
