import { stackFiles } from '../layout.ts';
import type { Plan, Step } from '../stack-plan.ts';
import { phase } from './steps.ts';

const steps = {
  stopping: [{ do: 'removeServices', services: ['webhook-gateway'] }],
  removing: [
    { do: 'removeFile', path: stackFiles.overlay },
    { do: 'removeFile', path: stackFiles.caddyfile },
  ],
} as const satisfies Record<string, readonly Step[]>;

/**
 * The gateway and its files go; secret, certificates, backend and agent server stay (specification §4.4).
 * @param hasGateway something of it is there: else nothing is to do
 */
export const planDisable = (directory: string, hasGateway: boolean): Plan => ({
  command: 'webhook disable',
  directory,
  onFailure: 'undo',
  reveals: [],
  notes: [],
  phases: [
    phase('stopping', 'Removing the gateway', hasGateway ? steps.stopping : []),
    phase('removing', 'Removing its files', hasGateway ? steps.removing : []),
  ],
});
