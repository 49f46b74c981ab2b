/**
 * The parts of GitHub that reviews and their deployment share: transport, the key of the App, its facts and its needs. Never here: a
 * request of its own.
 */
export {
  AppAnswer,
  type AppFacts,
  appFactsOf,
  clockSkewMs,
  HookAnswer,
  type HookFacts,
  hookFactsOf,
} from './app-facts.ts';
export { GitHubError, type GitHubErrorCode } from './error.ts';
export { missingEvents, missingPermissions, neededEvents, neededPermissions } from './needs.ts';
export { type PrivateKey, readPrivateKey, usablePrivateKey } from './private-key.ts';
export { apiVersion, createTransport, type Fetch } from './transport.ts';
