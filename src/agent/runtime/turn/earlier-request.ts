import type { Item, ItemOf } from '../../../protocol/index.ts';
import { needOfQuestion } from '../../question.ts';
import type { ApprovalNeed } from '../../tool.ts';
import { type ReviewedCall, refusalOf } from './call-review.ts';
import { wordOf } from './decisions.ts';

/** Shortest time to answer after a start, in milliseconds, because the machine may have slept for a day. */
const leastAnswerMs = 30_000;

/** Deadline for an answer. @param now start of this process, if an earlier one asked */
export const expiryOf = (createdAt: string, timeoutMs: number, now = 0): string =>
  new Date(Math.max(Date.parse(createdAt) + timeoutMs, now === 0 ? 0 : now + leastAnswerMs)).toISOString();

/** Approval or question that an earlier process asked for a call. */
export interface EarlierRequest {
  readonly reviewed: ReviewedCall;
  readonly asked: Pick<Item, 'id' | 'createdAt'>;
}

/** @returns undefined: no process asked about the call */
export function earlierRequest(items: readonly Item[], made: ItemOf<'toolCall'>): EarlierRequest | undefined {
  const { callId, tool: name, arguments: args } = made;
  const call = { callId, name, arguments: args };
  const later = items.slice(items.indexOf(made));
  const asked = later.find(
    (item): item is ItemOf<'approvalRequest' | 'question'> =>
      (item.type === 'approvalRequest' || item.type === 'question') && item.callId === callId,
  );
  if (!asked) return undefined;
  if (asked.type === 'question') return { reviewed: questionOf(call, asked), asked };
  const answer = later.find(
    (item): item is ItemOf<'approvalResponse'> =>
      item.type === 'approvalResponse' && item.requestId === asked.requestId,
  );
  return { reviewed: approvalOf(call, asked, answer), asked };
}

function questionOf(call: ReviewedCall['call'], item: ItemOf<'question'>): ReviewedCall {
  const {
    requestId,
    source,
    from,
    message,
    questions,
    schema,
    url,
    state,
    answers,
    decidedBy = 'policy',
    client,
  } = item;
  const need = needOfQuestion({ source, from, message, questions, schema, url });
  const word = wordOf(state);
  return {
    ...{ call, tool: undefined, args: undefined, need, requestId },
    refusal: state === 'open' || word === 'accept' ? undefined : refusalOf(need, decidedBy),
    decision: state === 'open' ? undefined : { word, by: decidedBy, client, content: answers },
  };
}

/** Call about which an earlier process asked. */
function approvalOf(
  call: ReviewedCall['call'],
  { requestId, approvalType: kind, operation, target, scopeKey, covers = '', ...asked }: ItemOf<'approvalRequest'>,
  answer: ItemOf<'approvalResponse'> | undefined,
): ReviewedCall {
  const { workingDirectory, reason, proposedRule } = asked;
  const need: ApprovalNeed = {
    ...{ kind, operation, target, scopeKey, covers },
    ...(workingDirectory !== undefined && { workingDirectory }),
    ...(reason !== undefined && { reason }),
    ...(proposedRule && { proposedRule }),
  };
  const isRefused = answer?.decision === 'decline' || answer?.decision === 'cancel';
  return {
    ...{ call, tool: undefined, args: undefined, need, requestId },
    refusal: isRefused ? refusalOf(need, answer.decidedBy) : undefined,
    decision: answer && { word: answer.decision, by: answer.decidedBy, client: answer.client },
  };
}
