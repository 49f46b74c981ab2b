import * as v from 'valibot';
import { HttpError } from '../http/index.ts';
import {
  type ApprovalDecision,
  approvalDecisions,
  checkContent,
  QuestionAnswer,
  type QuestionForm,
  questionActions,
} from '../protocol/index.ts';
import type { Resume } from './input.ts';

/** JSON Schema of the answer to an interrupt. */
export const approvalAnswer = {
  type: 'object',
  properties: {
    decision: { type: 'string', enum: [...approvalDecisions] },
    approved: { type: 'boolean', description: 'Short for the decisions accept and decline.' },
  },
  anyOf: [{ required: ['decision'] }, { required: ['approved'] }],
};

const Answer = v.union([
  v.pipe(
    v.object({ decision: v.picklist(approvalDecisions) }),
    v.transform(({ decision }): ApprovalDecision => decision),
  ),
  v.pipe(
    v.object({ approved: v.boolean() }),
    v.transform(({ approved }): ApprovalDecision => (approved ? 'accept' : 'decline')),
  ),
]);

/** The body of an answer that comes by itself. */
export const ApprovalAnswer = v.union(Answer.options, `{"decision": …} with one of ${approvalDecisions.join(', ')}`);

/**
 * Reads a client's answer to an interrupt. A cancelled interrupt ends the turn, unless the client also sends new input.
 *
 * @throws HttpError 400 for an invalid answer
 */
export function decisionOf({ interruptId, status, payload }: Resume, hasMore: boolean): ApprovalDecision {
  if (status === 'cancelled') return hasMore ? 'decline' : 'cancel';
  const answer = v.safeParse(Answer, payload);
  if (answer.success) return answer.output;
  throw new HttpError(400, 'invalidRequest', `The answer to interrupt ${interruptId} must be {"decision": …}.`, {
    decisions: approvalDecisions,
  });
}

/** JSON Schema of the answer to a question. */
export const questionAnswer = {
  type: 'object',
  properties: {
    action: { type: 'string', enum: [...questionActions] },
    content: { type: 'object', description: 'With action accept: the answers, by field.' },
  },
  required: ['action'],
};

/** Answer of a client to an interrupt. */
export type InterruptAnswer = { readonly decision: ApprovalDecision } | QuestionAnswer;

/** Reads a client's answer to a question. @throws HttpError 400 for an answer that does not fit it */
export function questionAnswerOf({ interruptId, status, payload }: Resume, question: QuestionForm): QuestionAnswer {
  if (status === 'cancelled') return { action: 'cancel' };
  const refuse = (problem: string) =>
    new HttpError(400, 'invalidRequest', `The answer to interrupt ${interruptId} is refused: ${problem}`);
  const answer = v.safeParse(QuestionAnswer, payload);
  if (!answer.success) throw refuse('Send {"action": "accept", "content": …}.');
  const { action, content = {} } = answer.output;
  if (action !== 'accept') return { action };
  const checked = checkContent(question, content);
  if (!checked.ok) throw refuse(`${checked.field}: ${checked.problem}`);
  return { action, content: checked.content };
}
