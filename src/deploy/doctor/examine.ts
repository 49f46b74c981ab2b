import { messageOf } from '../../lib/index.ts';
import { DeployError } from '../errors.ts';
import { AppQuestionError } from '../github/index.ts';
import { DoctorContext } from './context.ts';
import { fail, skip } from './finding.ts';
import { limits } from './limits.ts';
import { unmet } from './needs.ts';
import { type Check, checksOf } from './table.ts';
import type { CheckResult, DoctorOptions, Finding } from './types.ts';

/**
 * Checks a stack and changes nothing. Independent checks run at the same time; results come in the order of the table, each
 * as soon as those before it are there. A check that throws or does not end has failed; a caller that stops reading stops them.
 * @throws DeployError invalidInput, at the first result, when `only` names no check
 */
export async function* examine(options: DoctorOptions): AsyncGenerator<CheckResult, void> {
  const stop = new AbortController();
  const signal = AbortSignal.any([stop.signal, ...(options.signal ? [options.signal] : [])]);
  try {
    const context = new DoctorContext(options, signal);
    const checks = chosen(checksOf(context), options.only);
    for (const result of inOrder(checks, (check) => carryOut(check, context))) yield await result;
  } finally {
    stop.abort();
  }
}

/** Checks that `only` names, by ids or prefixes of ids. @throws DeployError invalidInput */
function chosen(checks: readonly Check[], only: readonly string[] | undefined): readonly Check[] {
  if (only === undefined || only.length === 0) return checks;
  const names = (check: Check, wanted: string): boolean => check.id === wanted || check.id.startsWith(`${wanted}.`);
  const unknown = only.filter((wanted) => !checks.some((check) => names(check, wanted)));
  if (unknown.length > 0)
    throw new DeployError(
      'invalidInput',
      `There is no check called ${unknown.join(', ')} for this stack.`,
      `Checks: ${checks.map(({ id }) => id).join(', ')}.`,
    );
  return checks.filter((check) => only.some((wanted) => names(check, wanted)));
}

/** Begins a few at a time, independently of the reader; the returned promises never reject. */
function inOrder<T, R>(items: readonly T[], work: (item: T) => Promise<R>): readonly Promise<R>[] {
  let free: number = limits.atOnce;
  const waiting: (() => void)[] = [];
  const begin = async (item: T): Promise<R> => {
    if (free === 0) await new Promise<void>((resolve) => waiting.push(resolve));
    else free -= 1;
    try {
      return await work(item);
    } finally {
      const next = waiting.shift();
      if (next) next();
      else free += 1;
    }
  };
  return items.map(begin);
}

async function carryOut(check: Check, context: DoctorContext): Promise<CheckResult> {
  const from = performance.now();
  const { status, saw, hint } = await find(check, context);
  return {
    id: check.id,
    title: check.title,
    status,
    saw: context.clean(saw),
    hint: hint === null ? null : context.clean(hint),
    docs: check.docs,
    durationMs: Math.round(performance.now() - from),
  };
}

/** Never rejects, and ends in time however the check behaves. */
async function find(check: Check, context: DoctorContext): Promise<Finding> {
  if (context.signal.aborted) return skip('The doctor was stopped before.');
  const timeoutMs = Math.max(context.timeoutMs, check.timeoutMs ?? 0);
  const timeout = new AbortController();
  // Keeps the process alive, unlike `AbortSignal.timeout`: a check may wait for something that does not.
  const timer = setTimeout(() => timeout.abort(), timeoutMs);
  const signal = AbortSignal.any([context.signal, timeout.signal]);
  const ended = aborted(signal);
  try {
    return await Promise.race([look(check, context, signal), ended.promise]);
  } catch (error) {
    if (timeout.signal.aborted)
      return fail(`There was no answer within ${timeoutMs} ms.`, 'Try again; check the load of the machine.');
    if (context.signal.aborted) return skip('The doctor was stopped meanwhile.');
    return fail(messageOf(error), hintOf(error));
  } finally {
    clearTimeout(timer);
    ended.forget();
  }
}

/** Next step of an error that names one; null otherwise. */
const hintOf = (error: unknown): string | null =>
  error instanceof DeployError || error instanceof AppQuestionError ? error.hint : null;

async function look(check: Check, context: DoctorContext, signal: AbortSignal): Promise<Finding> {
  for (const need of check.needs) {
    const reason = await unmet(need, context);
    if (reason !== null) return skip(reason);
  }
  return check.run(context, signal);
}

/** Rejects when `signal` aborts. `forget` removes the listener. */
function aborted(signal: AbortSignal): { readonly promise: Promise<never>; forget(): void } {
  const { promise, reject } = Promise.withResolvers<never>();
  const onAbort = (): void => reject(signal.reason);
  promise.catch(() => {});
  if (signal.aborted) onAbort();
  else signal.addEventListener('abort', onAbort, { once: true });
  return { promise, forget: () => signal.removeEventListener('abort', onAbort) };
}
