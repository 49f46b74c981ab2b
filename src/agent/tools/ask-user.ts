import * as v from 'valibot';
import { AgentQuestions, contentWords } from '../../protocol/index.ts';
import { askUserTool, needOfQuestion, unansweredText } from '../question.ts';
import type { Tool } from '../tool.ts';
import { defineTool } from './define.ts';
import { done } from './text.ts';

/** `AskUser`: asks the user in the same way as an approval. The answer is the result of the call. */
export function createAskUser(): Tool {
  return defineTool({
    name: askUserTool,
    description:
      'Asks the user when only they can decide, and waits. 1 to 4 questions with 2 to 4 options each; the user may answer in their own words. Never ask for secrets.',
    isReadOnly: true,
    isExtra: true,
    parameters: v.object({ questions: v.pipe(AgentQuestions, v.description('1 to 4, with different headers.')) }),
    approvalFor: async ({ questions }) => needOfQuestion({ source: 'agent', from: 'Oratorio', questions }),
    run: async (_, { answers }) =>
      done(answers ? `The user answered:\n${contentWords(answers)}` : unansweredText.policy),
  });
}
