/**
 * Words for the guards and actions of every machine, as its chart shows them. XState has descriptions of states and
 * transitions only. A name without words fails `test/machines/words.test.ts`.
 */
import type { MachineName } from '../names.ts';
import { host, inboxFeed, inboxRequest, move, notificationChannel, pushSwitch } from './inbox.ts';
import { agentServer, apiProxy, backgroundProcess, externalAgent, hub, mcpServer, sidecarSlot } from './processes.ts';
import { databaseOutage, reviewRun, stackChange, webhookIngress } from './review.ts';
import type { MachineWords } from './types.ts';
import {
  automation,
  changeReview,
  checkpoint,
  conversation,
  raceAttempt,
  raceReview,
  scheduler,
  turn,
  workspaceHealth,
} from './work.ts';

export type { MachineWords } from './types.ts';

export const machineWords: Readonly<Record<MachineName, MachineWords>> = {
  hub,
  'agent-server': agentServer,
  'sidecar-slot': sidecarSlot,
  'api-proxy': apiProxy,
  'workspace-health': workspaceHealth,
  turn,
  'mcp-server': mcpServer,
  'external-agent': externalAgent,
  'background-process': backgroundProcess,
  checkpoint,
  scheduler,
  automation,
  'review-run': reviewRun,
  'database-outage': databaseOutage,
  'stack-change': stackChange,
  'webhook-ingress': webhookIngress,
  host,
  move,
  'inbox-feed': inboxFeed,
  'inbox-request': inboxRequest,
  'notification-channel': notificationChannel,
  'push-switch': pushSwitch,
  conversation,
  'change-review': changeReview,
  'race-attempt': raceAttempt,
  'race-review': raceReview,
};
