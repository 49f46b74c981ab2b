/**
 * The catalogue of statecharts: the first reading for a newcomer, and the source of the diagrams, the inspector and the
 * tests. Pure XState v5: no I/O, no clock, no chance, no secret in a context. Never here: anything imported from `src/`.
 */

export * from './agent-server.ts';
export * from './agent-server-selectors.ts';
export * from './agent-server-types.ts';
export * from './api-proxy.ts';
export * from './automation.ts';
export * from './background-process.ts';
export { catalogue } from './catalogue.ts';
export * from './change-review.ts';
export * from './checkpoint.ts';
export * from './conversation.ts';
export * from './database-outage.ts';
export * from './external-agent.ts';
export * from './failure.ts';
export * from './host.ts';
export * from './hub.ts';
export * from './inbox-feed.ts';
export * from './inbox-request.ts';
export * from './mcp-server.ts';
export type { Lane, StateKind, StateMeta } from './meta.ts';
export * from './move.ts';
export * from './names.ts';
export * from './notification-channel.ts';
export type { Places } from './places/types.ts';
export * from './process-events.ts';
export * from './push-switch.ts';
export * from './race-attempt.ts';
export * from './race-review.ts';
export * from './restart-policy.ts';
export * from './review-run.ts';
export * from './scheduler.ts';
export * from './sidecar-slot.ts';
export * from './stack-change.ts';
export type { ProbedPolicy, SupervisedPolicy } from './supervised-process.ts';
export * from './turn.ts';
export * from './turn-selectors.ts';
export { holdTimeoutOf, maxRetryAfterMs } from './turn-setup.ts';
export * from './turn-types.ts';
export * from './webhook-ingress.ts';
export { type MachineWords, machineWords } from './words/index.ts';
export * from './workspace-health.ts';
