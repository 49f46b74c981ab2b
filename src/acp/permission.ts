import type {
  PermissionOption,
  RequestPermissionResponse,
  ToolCallContent,
  ToolCallUpdate,
} from '@agentclientprotocol/sdk';
import { count, foldBlankLines, visible } from '../lib/index.ts';
import type { ApprovalDecision, ApprovalRequest } from '../protocol/index.ts';
import type { ShownCall } from './tool-calls.ts';

/** Choices of a user for an approval; the ids are decisions of the agent server. */
export const permissionOptions: PermissionOption[] = [
  { optionId: 'accept', name: 'Allow once', kind: 'allow_once' },
  { optionId: 'acceptForSession', name: 'Allow for this session', kind: 'allow_always' },
  { optionId: 'acceptAlways', name: 'Always allow in this workspace', kind: 'allow_always' },
  { optionId: 'decline', name: 'Decline', kind: 'reject_once' },
];

const decisions: ReadonlyMap<string, ApprovalDecision> = new Map(
  (['accept', 'acceptForSession', 'acceptAlways', 'decline'] as const).map((decision) => [decision, decision]),
);

/**
 * The call that an approval is about, as the editor asks for it. Titles are one line: the whole target, the directory, the
 * reason and the scope of lasting answers are content, with control characters spelled out.
 */
export function askedCall(request: ApprovalRequest, shown?: ShownCall): ToolCallUpdate {
  const { callId, tool, operation, target } = request;
  const title = visible(shown?.title ?? `${operation} ${target}`, { multiline: false });
  const question: ToolCallContent = { type: 'content', content: { type: 'text', text: questionOf(request) } };
  const content = [...(shown?.content ?? []), question];
  return { toolCallId: callId, name: tool, status: 'pending', ...shown, title, content };
}

function questionOf({ operation, target, workingDirectory, covers, reason, proposedRule }: ApprovalRequest): string {
  const length = target.split('\n').length;
  const lines = [
    `${operation}:`,
    ...foldBlankLines(target)
      .split('\n')
      .map((line) => `│ ${line}`),
    ...(length > 1 ? [`length: ${count(length, 'line')}`] : []),
    ...(workingDirectory === undefined ? [] : [`directory: ${workingDirectory}`]),
    ...(reason === undefined ? [] : [`reason: ${reason}`]),
    ...(covers === undefined ? [] : [`${proposedRule ? 'session' : 'session, always'}: ${covers}`]),
    ...(proposedRule ? [`always: commands that begin with: ${proposedRule.prefix.join(' ')}`] : []),
  ];
  return lines.map((line) => visible(line, { multiline: false, strict: true })).join('\n');
}

/** An option that we did not offer allows nothing. A prompt that was cancelled meanwhile ends the turn. */
export function decisionOf({ outcome }: RequestPermissionResponse): ApprovalDecision {
  if (outcome.outcome === 'cancelled') return 'cancel';
  return decisions.get(outcome.optionId) ?? 'decline';
}
