import { monotonicMs } from '../../supervise/index.ts';
import type { ObserveChange } from '../apply/index.ts';
import { type Engine, findEngine } from '../engine/index.ts';
import { once } from '../once.ts';
import type { PhaseName } from '../stack-plan.ts';

/** Context that every operation gets from its caller. */
export interface Session {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
  readonly observe: ObserveChange;
  readonly now: () => Date;
  /** How long another command on the same stack is waited for. */
  readonly lockWaitMs: number;
  /** Shows created secrets, once, after everything has succeeded. */
  readonly showSecrets: (secrets: ReadonlyMap<string, string>) => void | Promise<void>;
  /** Git may ask for a password at the terminal of the caller. */
  readonly hasTerminal: boolean;
}

/** Looks for the engine when it is first needed, and once. */
export const engineOnce = ({ env, signal }: Pick<Session, 'env' | 'signal'>): (() => Promise<Engine>) =>
  once(() => findEngine({ env, signal }));

/** Shows work that comes before a plan as a phase of it. */
export async function watched<T>(
  { observe }: Pick<Session, 'observe'>,
  phase: PhaseName,
  title: string,
  work: () => Promise<T>,
): Promise<T> {
  const begun = monotonicMs();
  observe({ type: 'phase', phase, title, state: 'begun' });
  let state: 'done' | 'failed' = 'failed';
  try {
    const result = await work();
    state = 'done';
    return result;
  } finally {
    observe({ type: 'phase', phase, title, state, elapsedMs: monotonicMs() - begun });
  }
}
