import type { PhaseName, Step } from '../stack-plan.ts';

/** Progress of a plan, for observers. Times in milliseconds. */
export type ChangeEvent =
  | { readonly type: 'phase'; readonly phase: PhaseName; readonly title: string; readonly state: 'begun' }
  | {
      readonly type: 'phase';
      readonly phase: PhaseName;
      readonly title: string;
      readonly state: 'done' | 'failed';
      readonly elapsedMs: number;
    }
  | {
      readonly type: 'step';
      readonly key: string;
      readonly step: Step['do'];
      /** `kept`: it was so already. */
      readonly state: 'begun' | 'done' | 'kept';
    }
  /** A line of something long: a clone, a pull, a build. */
  | { readonly type: 'output'; readonly line: string }
  | { readonly type: 'undoing'; readonly reason: string }
  | { readonly type: 'undone' };

export type ObserveChange = (event: ChangeEvent) => void;
