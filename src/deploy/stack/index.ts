/**
 * A stack on its host: its layout, its state on the disk, its machine, and secrets that come in from files. Called by the
 * commands before they plan. Never here: changing files (`apply`), their text (`files`), the engine.
 */

export { layoutOf, type StackLayout, stackFiles } from '../layout.ts';
export { giveTo } from './give-to.ts';
export { type Ownership, readStack, readText, type Stack } from './read-stack.ts';
export { rememberSecrets, secretsOfStack } from './remembered-secrets.ts';
export { readSecretFile, readSecretLine, type SecretFileOptions, type SecretText } from './secret-input.ts';
export { freeBytes, isSelinuxEnforcing, requireLinux, type StackUser, stackUser } from './system.ts';
