import type { ApprovalPolicy, TurnMode } from '../../../protocol/index.ts';
import type { TurnOptions } from '../types.ts';
import type { TurnHost } from './host.ts';

/** Rights of one turn, from its caller's request, its thread and the configuration. */
export interface TurnRights {
  readonly policy: ApprovalPolicy;
  readonly mode: TurnMode;
}

/** Returns the rights of a turn. A read-only thread declines calls that need approval, also when its caller requests otherwise. */
export function rightsOf(
  { config, settings }: Pick<TurnHost, 'config' | 'settings'>,
  options: Pick<TurnOptions, 'approvalPolicy' | 'mode'>,
): TurnRights {
  const asked = options.approvalPolicy ?? config.approvalPolicy ?? settings.approvalPolicy;
  return { policy: config.readOnly ? 'interrupt' : asked, mode: options.mode ?? config.mode ?? 'default' };
}
