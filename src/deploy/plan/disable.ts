import { stackFiles } from '../layout.ts';
import type { Plan, Step } from '../stack-plan.ts';
import { phase } from './steps.ts';

/** Files of the gateway. */
export type GatewayFile = typeof stackFiles.overlay | typeof stackFiles.caddyfile;

const gatewayFiles: readonly GatewayFile[] = [stackFiles.overlay, stackFiles.caddyfile];
const stopping: readonly Step[] = [{ do: 'removeServices', services: ['webhook-gateway'] }];

/**
 * The gateway and its files go; secret, certificates, backend and agent server stay (specification §4.4).
 * @param hasGateway something of it is there: else nothing is to do
 * @param kept its files that only their owner may remove: changed by hand, or not made here
 */
export const planDisable = (directory: string, hasGateway: boolean, kept: readonly GatewayFile[] = []): Plan => ({
  command: 'webhook disable',
  directory,
  onFailure: 'undo',
  reveals: [],
  notes: kept.map(noteOf),
  phases: [
    phase('stopping', 'Removing the gateway', hasGateway ? stopping : []),
    phase(
      'removing',
      'Removing its files',
      gatewayFiles.flatMap((path) => (hasGateway && !kept.includes(path) ? [{ do: 'removeFile', path }] : [])),
    ),
  ],
});

/** With the overlay the next start of the whole stack brings the gateway back. */
const noteOf = (path: GatewayFile): string =>
  path === stackFiles.overlay
    ? `${path} was changed or not made here, and stays. Move it away, or the next restart starts the gateway again.`
    : `${path} was changed or not made here, and stays.`;
