import { outputRedactorFor, type Redactor } from '../engine/index.ts';
import { DeployError } from '../errors.ts';
import { type StackLayout, secretsOfStack } from '../stack/index.ts';

/** Makes a function that takes the secrets of a stack out of a text, also those that `.env` had before. */
export const stackRedactor = (layout: StackLayout): Redactor => outputRedactorFor(secretsOfStack(layout));

/** The error without secrets in its words. A changed one loses its cause, whose message has them, too. */
export function withoutSecrets(error: DeployError, redact: Redactor): DeployError {
  const [message, hint] = [redact(error.message), error.hint === null ? null : redact(error.hint)];
  return message === error.message && hint === error.hint ? error : new DeployError(error.code, message, hint);
}

/** Does work on a stack, whose errors hold no secret of it. */
export async function guarded<T>(layout: StackLayout, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof DeployError) throw withoutSecrets(error, stackRedactor(layout));
    throw error;
  }
}
