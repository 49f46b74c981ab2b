/** Every machine by its name: a module of its own, so that a program that runs some of them need not build all. */
import type { AnyStateMachine } from 'xstate';
import { agentServerMachine } from './agent-server.ts';
import { apiProxyMachine } from './api-proxy.ts';
import { automationMachine } from './automation.ts';
import { backgroundProcessMachine } from './background-process.ts';
import { changeReviewMachine } from './change-review.ts';
import { checkpointMachine } from './checkpoint.ts';
import { conversationMachine } from './conversation.ts';
import { databaseOutageMachine } from './database-outage.ts';
import { externalAgentMachine } from './external-agent.ts';
import { hostMachine } from './host.ts';
import { hubMachine } from './hub.ts';
import { inboxFeedMachine } from './inbox-feed.ts';
import { inboxRequestMachine } from './inbox-request.ts';
import { mcpServerMachine } from './mcp-server.ts';
import { moveMachine } from './move.ts';
import type { MachineName } from './names.ts';
import { notificationChannelMachine } from './notification-channel.ts';
import { pushSwitchMachine } from './push-switch.ts';
import { raceAttemptMachine } from './race-attempt.ts';
import { raceReviewMachine } from './race-review.ts';
import { reviewRunMachine } from './review-run.ts';
import { schedulerMachine } from './scheduler.ts';
import { sidecarSlotMachine } from './sidecar-slot.ts';
import { stackChangeMachine } from './stack-change.ts';
import { turnMachine } from './turn.ts';
import { webhookIngressMachine } from './webhook-ingress.ts';
import { workspaceHealthMachine } from './workspace-health.ts';

const machines: Readonly<Record<MachineName, AnyStateMachine>> = {
  hub: hubMachine,
  'agent-server': agentServerMachine,
  'sidecar-slot': sidecarSlotMachine,
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
  'database-outage': databaseOutageMachine,
  'stack-change': stackChangeMachine,
  'webhook-ingress': webhookIngressMachine,
  host: hostMachine,
  move: moveMachine,
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
