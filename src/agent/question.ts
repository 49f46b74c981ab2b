import { fieldsOf, type QuestionForm } from '../protocol/index.ts';
import type { ApprovalNeed } from './tool.ts';

/** Name of the tool with which our agent asks. */
export const askUserTool = 'AskUser';

/** A question as an approval need, so that approvals ask it, store it and return its answer. */
export const needOfQuestion = (question: QuestionForm): ApprovalNeed => ({
  ...{ kind: 'remoteResource', operation: 'ask', target: wordsOf(question), question },
  ...{ scopeKey: 'question', covers: 'this question', isAskedAlways: true },
});

/** The question as one text, for clients without fields. */
function wordsOf(question: QuestionForm): string {
  const { message, url } = question;
  const fields = fieldsOf(question).map(({ title, description = title }) => description);
  return [message, url, ...fields].filter((text) => text !== undefined && text !== '').join('\n');
}

/** Result of a question without an answer, for the model. */
export const unansweredText: Readonly<Record<'user' | 'policy' | 'timeout', string>> = {
  user: 'The user declined to answer. Decide yourself and say which assumption you made.',
  timeout: 'No answer came in time. Decide yourself and say which assumption you made.',
  policy: 'No user can answer; decide yourself and say which assumption you made.',
};
