/**
 * Places of the states of machines whose lanes alone draw too many crossing lines: rows of names for each size class, `.` for an empty
 * place. A name that is not unique is written with its parent. `wide` is as `laptop` where it is missing.
 */
import type { MachineName } from '../names.ts';
import { agentServer } from './agent-server.ts';
import { apiProxy } from './api-proxy.ts';
import { automation } from './automation.ts';
import { checkpoint } from './checkpoint.ts';
import { conversation } from './conversation.ts';
import { externalAgent } from './external-agent.ts';
import { host } from './host.ts';
import { mcpServer } from './mcp-server.ts';
import { move } from './move.ts';
import { reviewRun } from './review-run.ts';
import { turn } from './turn.ts';
import type { Places } from './types.ts';
import { webhookIngress } from './webhook-ingress.ts';

export type { Places } from './types.ts';

export const machinePlaces: Readonly<Partial<Record<MachineName, Places>>> = {
  'agent-server': agentServer,
  'api-proxy': apiProxy,
  automation,
  checkpoint,
  conversation,
  'external-agent': externalAgent,
  host,
  'mcp-server': mcpServer,
  move,
  'review-run': reviewRun,
  turn,
  'webhook-ingress': webhookIngress,
};
