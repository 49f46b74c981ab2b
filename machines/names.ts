/** Names of the machines, without the machines: the help of the command line does not load XState. */
export const machineNames = [
  'hub',
  'agent-server',
  'sidecar-slot',
  'api-proxy',
  'workspace-health',
  'turn',
  'mcp-server',
  'external-agent',
  'background-process',
  'checkpoint',
  'scheduler',
  'automation',
  'review-run',
  'database-outage',
  'stack-change',
  'webhook-ingress',
  'host',
  'move',
  'inbox-feed',
  'inbox-request',
  'notification-channel',
  'push-switch',
  'conversation',
  'change-review',
  'race-attempt',
  'race-review',
] as const;

/** Name of a machine in documents, in `oratorio machines` and on the wire. */
export type MachineName = (typeof machineNames)[number];
