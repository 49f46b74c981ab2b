import { applyPlan, type Outcome, recoverForeign, withStackLock } from '../apply/index.ts';
import type { Engine } from '../engine/index.ts';
import { parseEnv } from '../files/index.ts';
import { layoutOf, readStack, readText, rememberSecrets, type StackLayout } from '../stack/index.ts';
import type { Plan, StackCommand } from '../stack-plan.ts';
import { engineOnce, type Session } from './session.ts';
import { effectsOf } from './step-effects.ts';
import { guarded, stackRedactor, withoutSecrets } from './without-secrets.ts';

/** Context of a command that makes its plan. */
export interface Preparing {
  readonly engine: () => Promise<Engine>;
  readonly session: Session;
  /** The plan is only to be shown: nothing is fetched or built for it. */
  readonly isDry: boolean;
}

export interface Change {
  readonly directory: string;
  readonly command: StackCommand;
  /** Checks the preconditions before anything is written, the lock included. @throws DeployError */
  readonly check: () => void;
  /** Reads the present stack and makes the plan. */
  readonly prepare: (preparing: Preparing) => Promise<Plan>;
}

/** Makes the plan without a lock and without any change. */
export async function planOf({ directory, check, prepare }: Change, session: Session): Promise<Plan> {
  check();
  const layout = layoutOf(directory);
  return guarded(layout, async () =>
    withoutSecretNotes(await prepare({ engine: engineOnce(session), session, isDry: true }), layout),
  );
}

const withoutSecretNotes = (plan: Plan, layout: StackLayout): Plan => ({
  ...plan,
  notes: plan.notes.map(stackRedactor(layout)),
});

/** For every change but the first. @throws DeployError notAStack */
export const mustBeStack = (directory: string) => (): void => {
  readStack(directory);
};

/**
 * Carries out a change while no other command works on the stack: takes back an unfinished change of another one, makes the
 * plan from the state after that, and applies it.
 * @throws DeployError before the first step, with nothing changed
 */
export async function changeStack(change: Change, session: Session): Promise<Outcome> {
  const { directory, command, check, prepare } = change;
  const { observe, signal, now, lockWaitMs } = session;
  const layout = layoutOf(directory);
  const engine = engineOnce(session);
  const effects = effectsOf(layout, engine, session);
  check();
  const work = async (): Promise<Outcome> => {
    rememberSecrets(layout);
    await recoverForeign({ layout, command, effects, observe, now });
    const plan = withoutSecretNotes(await prepare({ engine, session, isDry: false }), layout);
    const showSecrets = async (names: readonly string[]): Promise<void> => {
      const { values } = parseEnv(readText(layout.env));
      await session.showSecrets(new Map(names.map((name) => [name, values.get(name) ?? ''])));
    };
    const outcome = await applyPlan({ plan, effects, observe, signal, now, showSecrets });
    rememberSecrets(layout);
    if (outcome.state === 'done') return outcome;
    return { ...outcome, failure: withoutSecrets(outcome.failure, stackRedactor(layout)) };
  };
  return withStackLock(layout, { command, waitMs: lockWaitMs, signal }, () => guarded(layout, work));
}
