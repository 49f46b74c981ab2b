/**
 * `oratorio server`: a review stack on a Linux host, from its first file to its removal. A command makes a plan (`plan`,
 * pure), which is carried out with a journal (`apply`) through step effects on a container engine and git (`engine`, `git`); the
 * texts of a stack are in `files`, its state on the disk in `stack`, its problems in `doctor`. Called by the command line.
 *
 * Never here: prompts and colours (they are the command line's), the review backend itself, changes to DNS, firewalls or
 * GitHub.
 */
export type { ChangeEvent, ChangeRecord, ObserveChange, Outcome } from './apply/index.ts';
export { defaults } from './defaults.ts';
export { type CheckResult, type DoctorOptions, examine, verdictOf } from './doctor/index.ts';
export { followLogs, portHolder, type ServiceState } from './engine/index.ts';
export { DeployError, type DeployErrorCode, deployErrors } from './errors.ts';
export {
  acmeEmail as checkAcmeEmail,
  checkSecretText,
  type Repository,
  repositoryNamed,
  secretOf,
  secretRefusals,
} from './files/index.ts';
export {
  addRepositoryChange,
  type Change,
  changeStack,
  checkHost,
  checkUpgrade,
  disableChange,
  enableChange,
  engineOnce,
  type IngressStatus,
  type InitAnswers,
  ingressStatus,
  initChange,
  isCertificates,
  keptGatewayFiles,
  type Leftovers,
  planOf,
  portOfStack,
  readLeftovers,
  restartChange,
  type Session,
  type StackStatus,
  stackStatus,
  tunnelLine,
  type UpgradeRequest,
  upgradeChange,
  type WebhookAnswers,
} from './operations/index.ts';
export { type PlanView, viewOf } from './plan/index.ts';
export { isProvider, type ProviderName, providers } from './providers.ts';
export { readSecretFile, readStack } from './stack/index.ts';
export type { ServiceName } from './stack-plan.ts';
