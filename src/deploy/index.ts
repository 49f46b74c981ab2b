/**
 * `oratorio server`: a review stack on a Linux host, from its first file to its removal. A command makes a plan (`plan`,
 * pure), which is carried out with a journal (`apply`) through step effects on a container engine and git (`engine`, `git`); what a stack
 * consists of is in `files`, what is on the disk in `stack`, what is wrong with it in `doctor`. Called by the command line.
 *
 * Never here: prompts and colours (they are the command line's), the review backend itself, changes to DNS, firewalls or
 * GitHub.
 */
export type { ChangeEvent, ChangeRecord, ObserveChange, Outcome } from './apply/index.ts';
export { defaults } from './defaults.ts';
export { type CheckResult, type DoctorOptions, examine } from './doctor/index.ts';
export { followLogs, type ServiceState } from './engine/index.ts';
export { DeployError, type DeployErrorCode, deployErrors } from './errors.ts';
export { acmeEmail as checkAcmeEmail } from './files/acme-email.ts';
export { checkSecretText, type Repository, secretOf, secretRefusals } from './files/index.ts';
export { addRepositoryChange } from './operations/add-repository.ts';
export type { InitAnswers, WebhookAnswers } from './operations/answers.ts';
export { type Change, changeStack, planOf } from './operations/change-stack.ts';
export { checkHost, isCertificates } from './operations/check-host.ts';
export { type IngressStatus, ingressStatus } from './operations/ingress.ts';
export { initChange } from './operations/init.ts';
export { type Leftovers, readLeftovers } from './operations/leftovers.ts';
export { repositoryNamed } from './operations/repository-named.ts';
export { engineOnce, type Session } from './operations/session.ts';
export { portOfStack, type StackStatus, stackStatus, tunnelLine } from './operations/status.ts';
export { checkUpgrade, restartChange, type UpgradeWish, upgradeChange } from './operations/upgrade.ts';
export { disableChange, enableChange } from './operations/webhook.ts';
export type { ServiceName } from './plan/plan.ts';
export { type PlanView, viewOf } from './plan/view.ts';
export { isProvider, type ProviderName, providers } from './providers.ts';
export { readSecretFile, readStack } from './stack/index.ts';
