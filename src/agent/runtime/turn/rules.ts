import * as v from 'valibot';
import { type ApprovalPolicy, approvalPolicies, type ThreadConfig, turnModes } from '../../../protocol/index.ts';
import type { StoredThread } from '../../thread-store.ts';
import type { RuntimeServices } from '../services.ts';
import type { TurnOptions } from '../types.ts';
import type { TurnThread } from './thread.ts';

/** Rules of a turn, and the rules of its settings and thread at its start, as saved in its facts. */
export const Rules = v.object({
  policy: v.picklist(approvalPolicies),
  mode: v.picklist(turnModes),
  settingsPolicy: v.picklist(approvalPolicies),
  threadPolicy: v.optional(v.picklist(approvalPolicies)),
  threadMode: v.picklist(turnModes),
  isTrusted: v.boolean(),
});
export type TurnRules = v.InferOutput<typeof Rules>;

/** Rules that the settings and a thread give to its turns. */
type PresentRules = Omit<TurnRules, 'policy' | 'mode'>;

/** Policies from loose to strict. */
const strictness: readonly ApprovalPolicy[] = ['autoApprove', 'default', 'interrupt'];
const isStricter = (a: ApprovalPolicy, b: ApprovalPolicy): boolean => strictness.indexOf(a) > strictness.indexOf(b);
const stricter = (a: ApprovalPolicy, b: ApprovalPolicy): ApprovalPolicy => (isStricter(a, b) ? a : b);

/** Policy of a turn that does not set one. */
const approvalPolicyOf = ({ threadPolicy, settingsPolicy }: PresentRules): ApprovalPolicy =>
  threadPolicy ?? settingsPolicy;

function presentRules(
  { settings, isTrusted = true }: RuntimeServices,
  { approvalPolicy, mode = 'default' }: ThreadConfig,
  channel: string | undefined,
): PresentRules {
  const { apiApprovalPolicy = settings.approvalPolicy } = settings;
  return {
    settingsPolicy: channel === 'api' ? apiApprovalPolicy : settings.approvalPolicy,
    ...(approvalPolicy !== undefined && { threadPolicy: approvalPolicy }),
    threadMode: mode,
    isTrusted,
  };
}

/** Part of a turn that determines its rules. */
interface RuledTurn {
  readonly services: RuntimeServices;
  readonly thread: Pick<TurnThread, 'config' | 'channel'>;
  readonly policy: ApprovalPolicy;
  readonly isPlanning: boolean;
}

/** Rules of a turn to save for the next process. */
export function rulesOf({ services, thread, policy, isPlanning }: RuledTurn): TurnRules {
  const { config, channel } = thread;
  return { policy, mode: isPlanning ? 'plan' : 'default', ...presentRules(services, config, channel) };
}

/**
 * Options of a resumed turn: its own rules, or the current rules of the settings, the thread and the parent's turn that have become
 * stricter.
 *
 * @param began undefined: the row has no rules, and the current rules apply
 * @param parent policy of the turn that waits for this one
 * @returns the options; a text: reason why the turn cannot continue
 */
export function resumedOptions(
  options: TurnOptions,
  began: TurnRules | undefined,
  services: RuntimeServices,
  { config = {}, identity }: StoredThread,
  parent: ApprovalPolicy | undefined,
): TurnOptions | string {
  if (!began) return options;
  const now = presentRules(services, config, identity?.channelName);
  if (began.isTrusted && !now.isTrusted) {
    const path = config.workspaceOverride ?? services.workspacePath;
    return `trust in the workspace was withdrawn, and the turn could run its settings. To trust it again: oratorio trust ${path}; then send the prompt again`;
  }
  let approvalPolicy = stricter(began.policy, parent ?? began.policy);
  const [policyThen, policyNow] = [approvalPolicyOf(began), approvalPolicyOf(now)];
  if (isStricter(policyNow, policyThen)) approvalPolicy = stricter(approvalPolicy, policyNow);
  if (isStricter(now.settingsPolicy, began.settingsPolicy))
    approvalPolicy = stricter(approvalPolicy, now.settingsPolicy);
  const isPlanning = began.mode === 'plan' || (now.threadMode === 'plan' && began.threadMode !== 'plan');
  return { ...options, approvalPolicy, mode: isPlanning ? 'plan' : 'default' };
}
