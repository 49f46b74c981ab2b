import { RequestError, type SessionModeState } from '@agentclientprotocol/sdk';
import { type ApprovalPolicy, approvalPolicies, type ThreadConfig } from '../protocol/index.ts';

const modeIds = [...approvalPolicies, 'plan'] as const;
type ModeId = (typeof modeIds)[number];

const names: Readonly<Record<ModeId, { readonly name: string; readonly description: string }>> = {
  default: {
    name: 'Ask',
    description: 'Asks before it writes files, runs commands or reaches outside of the workspace',
  },
  autoApprove: { name: 'Auto-approve', description: 'Does everything without asking' },
  interrupt: { name: 'Read only', description: 'Reads and searches; everything that would need approval is declined' },
  plan: { name: 'Plan', description: 'Reads and searches, and ends with a plan to accept' },
};

/**
 * The modes of a session: the approval policies of a thread, and planning.
 *
 * @param canPlan false for agents that cannot plan without acting
 */
export function modesOf(
  { mode, approvalPolicy }: Pick<ThreadConfig, 'mode'> & { readonly approvalPolicy: ApprovalPolicy },
  canPlan: boolean,
): SessionModeState {
  const isPlanning = mode === 'plan';
  const ids = modeIds.filter((id) => id !== 'plan' || canPlan || isPlanning);
  return {
    currentModeId: isPlanning ? 'plan' : approvalPolicy,
    availableModes: ids.map((id) => ({ id, ...names[id] })),
  };
}

/** @returns the settings of a thread in this mode; planning leaves its policy @throws RequestError -32602 */
export function settingsOf(modeId: string): Pick<ThreadConfig, 'mode' | 'approvalPolicy'> {
  const known = modeIds.find((id) => id === modeId);
  if (known === undefined) throw RequestError.invalidParams({ modeId }, `there are the modes ${modeIds.join(', ')}`);
  return known === 'plan' ? { mode: 'plan' } : { mode: 'default', approvalPolicy: known };
}
