import {
  type Change,
  changeStack,
  DeployError,
  type Outcome,
  type PlanView,
  planOf,
  type Session,
  viewOf,
} from '../../deploy/index.ts';
import { askYesNo, canAsk } from '../ask.ts';
import type { CommandContext } from '../command.ts';
import { quoted } from '../errors.ts';
import { explain } from '../explain.ts';
import { given } from './given.ts';
import { printSecrets } from './print-secrets.ts';
import { showChange } from './progress.ts';

/** Longest wait for another command on the same stack, in milliseconds. */
const lockWaitMs = 10_000;

export type Done = Extract<Outcome, { state: 'done' }>;

/** Outcome of a command that changes a stack. `dry`: nothing had to be done. */
export type Carried = { readonly state: 'dry'; readonly plan: PlanView } | ({ readonly plan: PlanView | null } & Done);

/**
 * Prints the plan, asks for confirmation at a terminal, and carries the plan out.
 * @throws DeployError when it failed; its changes are undone then, or the same command resumes them
 */
export async function carryOut(context: CommandContext, change: Change, question: string | null): Promise<Carried> {
  const { output, options } = context;
  const shown = showChange(output);
  const session = sessionOf(context, shown.observe);
  try {
    if (options['dry-run'] === true) return { state: 'dry', plan: viewOf(await planOf(change, session)) };
    const asks = question !== null && canAsk(context);
    if (asks) {
      showPlan(context, viewOf(await planOf(change, session)));
      if (!(await askYesNo(question, true))) throw new DeployError('cancelled', 'Cancelled: nothing was changed.');
    }
    const outcome = await changeStack(asks ? change : tellingNotes(context, change), session);
    shown.stop();
    if (outcome.state === 'done') return { ...outcome, plan: null };
    throw failureOf(outcome, `oratorio server ${change.command}${placeOf(context)}`);
  } catch (error) {
    // An interrupted command exits with the code of its signal, so the state of the stack is printed here.
    if (context.signal.aborted && error instanceof DeployError) {
      const failure = explain(error);
      if (output.json) output.document(failure.body);
      output.failure(failure);
    }
    throw error;
  } finally {
    shown.stop();
  }
}

/** Without a prompt the facts are printed while the plan is carried out. */
const tellingNotes = ({ output }: CommandContext, change: Change): Change => ({
  ...change,
  async prepare(preparing) {
    const plan = await change.prepare(preparing);
    for (const note of plan.notes) output.note(`! ${note}`);
    return plan;
  },
});

export function sessionOf(context: CommandContext, observe: Session['observe']): Session {
  const { env, signal } = context;
  return {
    env,
    signal,
    observe,
    now: () => new Date(),
    lockWaitMs,
    showSecrets: (secrets) => printSecrets(context, secrets),
    hasTerminal: canAsk(context),
  };
}

function placeOf(context: CommandContext): string {
  const directory = given(context, 'dir');
  return directory === undefined ? '' : ` --dir ${quoted(directory)}`;
}

/** @param again the command line that resumes */
function failureOf({ state, failure }: Exclude<Outcome, { state: 'done' }>, again: string): DeployError {
  const { code, message, hint } = failure;
  const after = {
    undone: 'All changes were undone.',
    kept: `Run it again to resume: ${again}`,
    undoFailed: null,
  }[state];
  const hints = [hint, after].filter((each) => each !== null);
  return new DeployError(code, message, hints.length === 0 ? null : hints.join('\n  '), { cause: failure });
}

/** A plan for people, or as a document. */
export function showPlan({ output }: CommandContext, plan: PlanView): void {
  if (output.json) {
    output.document({ plan });
    return;
  }
  const { bold, dim } = output.colors;
  output.line(`${bold(`oratorio server ${plan.command}`)} in ${plan.directory}`);
  for (const { title, steps } of plan.phases) {
    output.line(`  ${title}`);
    for (const step of steps) output.line(dim(`    ${step}`));
  }
  for (const note of plan.notes) output.line(`  ${note}`);
}
