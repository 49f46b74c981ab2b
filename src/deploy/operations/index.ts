/**
 * Commands of `oratorio server`: reads the input of a command, makes its plan and carries it out. The command line asks the
 * questions and prints the results.
 */
export { addRepositoryChange } from './add-repository.ts';
export type { InitAnswers, WebhookAnswers } from './answers.ts';
export { type Change, changeStack, planOf } from './change-stack.ts';
export { checkHost, isCertificates } from './check-host.ts';
export { type IngressStatus, ingressStatus } from './ingress.ts';
export { initChange } from './init.ts';
export { type Leftovers, readLeftovers } from './leftovers.ts';
export { engineOnce, type Session } from './session.ts';
export { portOfStack, type StackStatus, stackStatus, tunnelLine } from './status.ts';
export { checkUpgrade, restartChange, type UpgradeRequest, upgradeChange } from './upgrade.ts';
export { disableChange, enableChange, keptGatewayFiles } from './webhook.ts';
