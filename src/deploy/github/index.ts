/**
 * Reads the GitHub App of a stack, as the App itself: identity, permissions, address of the webhook, outcome of the last
 * deliveries, installations. Called by `server doctor` and, for its proof, by `server init`. Never here: a
 * request that changes something, an installation token, pull requests (those are of `src/review`).
 */
export { type AppClient, type AppClientOptions, createAppClient } from './app-client.ts';
export {
  type AskedApp,
  type DeliveryFacts,
  type InstallationFacts,
  readApp,
  readDeliveries,
  readHook,
  readInstallation,
} from './app-facts.ts';
export { appKey, appKeyIn } from './app-key.ts';
export { type AppErrorCode, AppQuestionError } from './errors.ts';
export { type AppProblem, type AppProof, type ProofOptions, proveApp } from './prove-app.ts';
