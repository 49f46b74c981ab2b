/**
 * Plans of `oratorio server`: each command as a list of steps, computed from the answers and the current stack. Pure: reads
 * neither the disk nor the engine.
 */
export { planAddRepository } from './add-repository.ts';
export type { AgentMove } from './agent-home.ts';
export { type GatewayFile, planDisable } from './disable.ts';
export { planEnable, type WebhookSecret, webhookSecret } from './enable.ts';
export { planInit } from './init.ts';
export { planRestart } from './restart.ts';
export type { StackPorts } from './steps.ts';
export { planUpgrade } from './upgrade.ts';
export { type PlanView, viewOf } from './view.ts';
