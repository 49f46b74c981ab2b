import type { Failure } from '../../../../machines/index.ts';
import { isMissingPart, replacedProgramAdvice } from '../../../lib/index.ts';
import { DelegateError } from '../../delegate.ts';
import { ModelError } from '../../model.ts';
import { StorageError } from '../../thread-store.ts';
import { BudgetError } from './budget.ts';
import { PromptBlockedError } from './hooks.ts';

/** Failure of a turn that needs a part of the program which an upgrade in place has removed. */
const replacedProgram: Failure = { code: 'programReplaced', message: replacedProgramAdvice, isRetryable: false };

/** Failure for the machine of a turn; undefined for an error without a code. */
export function codedFailureOf(error: unknown): Failure | undefined {
  if (error instanceof StorageError) return { code: 'storageFailed', message: error.message, isRetryable: true };
  if (error instanceof BudgetError) return { code: 'budgetReached', message: error.message, isRetryable: false };
  if (error instanceof PromptBlockedError) return { code: 'promptBlocked', message: error.message, isRetryable: false };
  if (error instanceof DelegateError) return { code: error.code, message: error.message, isRetryable: false };
  if (isMissingPart(error)) return replacedProgram;
  if (!(error instanceof ModelError)) return undefined;
  const { code, message, isRetryable, retryAfterMs, maxRetries } = error;
  return {
    code,
    message,
    isRetryable,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    ...(maxRetries !== undefined && { maxRetries }),
  };
}

/** Failure by a bug, which the log has under this id. */
export const bugFailure = (errorId: string): Failure => ({
  code: 'internalError',
  message: `The turn failed because of a bug; the log has it as ${errorId}.`,
  isRetryable: false,
});
