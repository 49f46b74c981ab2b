import { RequestError, type SessionModeState } from '@agentclientprotocol/sdk';
import { type ApprovalPolicy, approvalPolicies } from '../protocol/index.ts';

const names: Readonly<Record<ApprovalPolicy, { readonly name: string; readonly description: string }>> = {
  default: {
    name: 'Ask',
    description: 'Asks before it writes files, runs commands or reaches outside of the workspace',
  },
  autoApprove: { name: 'Auto-approve', description: 'Does everything without asking' },
  interrupt: { name: 'Read only', description: 'Reads and searches; everything that would need approval is declined' },
};

/** The modes of a session: the approval policies of a thread. */
export function modesOf(current: ApprovalPolicy): SessionModeState {
  return { currentModeId: current, availableModes: approvalPolicies.map((id) => ({ id, ...names[id] })) };
}

/** @throws RequestError -32602 */
export function policyOf(modeId: string): ApprovalPolicy {
  const policy = approvalPolicies.find((known) => known === modeId);
  if (policy) return policy;
  throw RequestError.invalidParams({ modeId }, `there are the modes ${approvalPolicies.join(', ')}`);
}
