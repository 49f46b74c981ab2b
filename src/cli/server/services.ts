import type { ServiceName } from '../../deploy/index.ts';
import type { CommandContext } from '../command.ts';

/** In the order in which they need each other. Not taken from the room: the command table is read by every command, the room by few. */
export const serviceNames = ['agent', 'backend', 'webhook-gateway'] as const satisfies readonly ServiceName[];

/** Services that were named by `--service`; the command table has let no other word through. */
export const servicesOf = ({ lists }: CommandContext): readonly ServiceName[] =>
  serviceNames.filter((name) => lists['service']?.includes(name));
