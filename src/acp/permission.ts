import type { PermissionOption, RequestPermissionResponse, ToolCallUpdate } from '@agentclientprotocol/sdk';
import type { ApprovalDecision, ApprovalRequest } from '../protocol/index.ts';
import type { ShownCall } from './tool-calls.ts';

/** What a user can say to a request for approval; the ids are decisions of the agent server. */
export const permissionOptions: PermissionOption[] = [
  { optionId: 'accept', name: 'Allow once', kind: 'allow_once' },
  { optionId: 'acceptForSession', name: 'Allow for this session', kind: 'allow_always' },
  { optionId: 'acceptAlways', name: 'Always allow in this workspace', kind: 'allow_always' },
  { optionId: 'decline', name: 'Decline', kind: 'reject_once' },
];

const decisions: ReadonlyMap<string, ApprovalDecision> = new Map(
  (['accept', 'acceptForSession', 'acceptAlways', 'decline'] as const).map((decision) => [decision, decision]),
);

/** The call that an approval is about, as the editor is asked it. */
export function askedCall({ callId, tool, operation, target }: ApprovalRequest, shown?: ShownCall): ToolCallUpdate {
  const title = `${operation} ${target}`;
  return { toolCallId: callId, name: tool, title, status: 'pending', ...(shown && { ...shown, title: shown.title }) };
}

/** An option that we did not offer allows nothing. A prompt that was cancelled meanwhile ends the turn. */
export function decisionOf({ outcome }: RequestPermissionResponse): ApprovalDecision {
  if (outcome.outcome === 'cancelled') return 'cancel';
  return decisions.get(outcome.optionId) ?? 'decline';
}
