import type { ServiceName } from '../../deploy/index.ts';
import type { CommandContext } from '../command.ts';

/** Services in the order of their dependencies. Repeated here, so that the command table does not load `deploy` each time. */
export const serviceNames = ['agent', 'backend', 'webhook-gateway'] as const satisfies readonly ServiceName[];

/** Services of `--service`; the command table rejects other words. */
export const servicesOf = ({ lists }: CommandContext): readonly ServiceName[] =>
  serviceNames.filter((name) => lists['service']?.includes(name));
