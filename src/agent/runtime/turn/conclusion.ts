import { ModelError } from '../../model.ts';
import { BudgetError, type TurnBudget } from './budget.ts';
import type { TurnCalls } from './calls.ts';
import type { TurnConversation } from './conversation.ts';
import type { TurnInference } from './inference.ts';

const notRun = 'Error: not run, because the turn has reached its limit.';
/** Last words of the server to a model that is at its limit. */
const lastNote =
  'This turn has reached its limit, and no tool can be called any more. Answer now: report your findings and your work so far, ' +
  'and the open tasks.';

export interface ConclusionParts {
  readonly budget: TurnBudget;
  readonly calls: TurnCalls;
  readonly conversation: TurnConversation;
  readonly inference: TurnInference;
}

/**
 * Asks the model of a turn at its limit for an answer without tools. Calls that were not run, and calls that the
 * model still makes, end without having run.
 *
 * @throws ModelError; BudgetError when a budget is used up; the reason of `signal` when it aborts
 */
export async function conclude(parts: ConclusionParts, signal: AbortSignal): Promise<void> {
  const { budget, calls, conversation, inference } = parts;
  conversation.addResults(calls.skip(notRun));
  const usedUp = budget.check();
  if (usedUp !== null) throw new BudgetError(usedUp);
  conversation.addNote(lastNote);
  const { flaw } = await inference.infer(signal, { isFirstRequest: false, retries: 0, isLast: true });
  calls.skip(notRun);
  if (flaw === 'empty') throw new ModelError('upstreamEmptyAnswer', 'The model ended its answer without a text.');
}
