import type { ServiceName, Step } from '../stack-plan.ts';

export type StepOf<D extends Step['do']> = Extract<Step, { readonly do: D }>;

/** Whether something had to be done, or was so already. */
export type Did = 'done' | 'kept';

export interface EffectOptions {
  /** Ends the work; the step settles soon after, and only when no program of it is at work any more. */
  readonly signal: AbortSignal;
  /** Called with each line of a long task, without secrets. */
  readonly onLine: (line: string) => void;
}

/**
 * Effects of a plan's steps besides files. Each can be repeated after a kill half-way: an incomplete clone is removed, services
 * in the wanted state stay.
 */
export interface StepEffects {
  /** Services of the stack that run now. */
  running(options: EffectOptions): Promise<readonly ServiceName[]>;
  clone(step: StepOf<'clone'>, options: EffectOptions): Promise<Did>;
  /** Removes a checkout, whole or half, that was not there before. */
  undoClone(step: StepOf<'clone'>, options: EffectOptions): Promise<void>;
  giveTo(step: StepOf<'giveTo'>, options: EffectOptions): Promise<void>;
  checkPorts(step: StepOf<'checkPorts'>, options: EffectOptions): Promise<void>;
  pullImages(step: StepOf<'pullImages'>, options: EffectOptions): Promise<void>;
  checkComposition(options: EffectOptions): Promise<void>;
  checkGateway(options: EffectOptions): Promise<void>;
  /** @param into an empty directory, 0700 */
  saveState(into: string, options: EffectOptions): Promise<void>;
  /** Called while no service runs that the change has started. @param from directory of `saveState` */
  restoreState(from: string, options: EffectOptions): Promise<void>;
  start(step: StepOf<'start'>, options: EffectOptions): Promise<void>;
  removeServices(step: StepOf<'removeServices'>, options: EffectOptions): Promise<void>;
  awaitHealthy(step: StepOf<'awaitHealthy'>, options: EffectOptions): Promise<void>;
}
