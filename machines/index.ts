/**
 * The catalogue of statecharts: what a newcomer reads first, and what the diagrams, the inspector and the tests are made
 * from. Pure XState v5: no I/O, no clock, no chance, no secret in a context. Never here: anything imported from `src/`.
 */
import type { AnyStateMachine } from 'xstate';
import { agentServerMachine } from './agent-server.ts';
import { apiProxyMachine } from './api-proxy.ts';
import { automationMachine } from './automation.ts';
import { backgroundProcessMachine } from './background-process.ts';
import { changeReviewMachine } from './change-review.ts';
import { checkpointMachine } from './checkpoint.ts';
import { conversationMachine } from './conversation.ts';
import { externalAgentMachine } from './external-agent.ts';
import { hubMachine } from './hub.ts';
import { inboxFeedMachine } from './inbox-feed.ts';
import { inboxRequestMachine } from './inbox-request.ts';
import { mcpServerMachine } from './mcp-server.ts';
import type { MachineName } from './names.ts';
import { notificationChannelMachine } from './notification-channel.ts';
import { pushSwitchMachine } from './push-switch.ts';
import { raceAttemptMachine } from './race-attempt.ts';
import { raceReviewMachine } from './race-review.ts';
import { reviewRunMachine } from './review-run.ts';
import { schedulerMachine } from './scheduler.ts';
import { stackChangeMachine } from './stack-change.ts';
import { turnMachine } from './turn.ts';
import { webhookIngressMachine } from './webhook-ingress.ts';
import { workspaceHealthMachine } from './workspace-health.ts';

export * from './agent-server.ts';
export * from './agent-server-selectors.ts';
export * from './agent-server-types.ts';
export * from './api-proxy.ts';
export * from './automation.ts';
export * from './background-process.ts';
export * from './change-review.ts';
export * from './checkpoint.ts';
export * from './conversation.ts';
export * from './external-agent.ts';
export * from './failure.ts';
export * from './hub.ts';
export * from './inbox-feed.ts';
export * from './inbox-request.ts';
export * from './mcp-server.ts';
export * from './names.ts';
export * from './notification-channel.ts';
export * from './process-events.ts';
export * from './push-switch.ts';
export * from './race-attempt.ts';
export * from './race-review.ts';
export * from './restart-policy.ts';
export * from './review-run.ts';
export * from './scheduler.ts';
export * from './stack-change.ts';
export type { ProbedPolicy, SupervisedPolicy } from './supervised-process.ts';
export * from './turn.ts';
export * from './turn-selectors.ts';
export * from './turn-types.ts';
export * from './webhook-ingress.ts';
export { type MachineWords, machineWords } from './words/index.ts';
export * from './workspace-health.ts';

const machines: Readonly<Record<MachineName, AnyStateMachine>> = {
  hub: hubMachine,
  'agent-server': agentServerMachine,
  'api-proxy': apiProxyMachine,
  'workspace-health': workspaceHealthMachine,
  turn: turnMachine,
  'mcp-server': mcpServerMachine,
  'external-agent': externalAgentMachine,
  'background-process': backgroundProcessMachine,
  checkpoint: checkpointMachine,
  scheduler: schedulerMachine,
  automation: automationMachine,
  'review-run': reviewRunMachine,
  'stack-change': stackChangeMachine,
  'webhook-ingress': webhookIngressMachine,
  'inbox-feed': inboxFeedMachine,
  'inbox-request': inboxRequestMachine,
  'notification-channel': notificationChannelMachine,
  'push-switch': pushSwitchMachine,
  conversation: conversationMachine,
  'change-review': changeReviewMachine,
  'race-attempt': raceAttemptMachine,
  'race-review': raceReviewMachine,
};

/** Every machine by its name. */
export const catalogue: Readonly<Record<string, AnyStateMachine>> = machines;
