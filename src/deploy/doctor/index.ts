/**
 * `server doctor`: one table of checks over a stack, its host and its App, each with its finding and a hint. Called by the
 * command of the same name. Never here: a repair, a prompt, the output of results, a secret in any result.
 */
export { publicHostIn } from './context.ts';
export { examine } from './examine.ts';
export { type DoctorSummary, verdictOf } from './finding.ts';
export {
  type CheckResult,
  type CheckStatus,
  checkStatuses,
  type DoctorOptions,
  type Finding,
  type GatewayAddress,
  type HostProbes,
  type RunGit,
} from './types.ts';
