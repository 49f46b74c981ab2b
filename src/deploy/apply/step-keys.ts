import type { Phase, Plan, Step } from '../stack-plan.ts';

/** A step with the name it has in the journal. */
export interface KeyedStep {
  readonly key: string;
  readonly step: Step;
}
export interface KeyedPhase {
  readonly phase: Phase;
  readonly steps: readonly KeyedStep[];
}

/** Subject of a step in its key. */
const subjects: { readonly [D in Step['do']]: (step: Extract<Step, { readonly do: D }>) => string } = {
  makeDirectory: ({ path }) => path,
  writeFile: ({ path }) => path,
  removeFile: ({ path }) => path,
  clone: ({ path }) => path,
  giveTo: ({ path }) => path,
  checkPorts: ({ host, ports }) => `${host}:${ports.join(',')}`,
  pullImages: ({ services }) => services.join(','),
  checkComposition: () => '',
  checkGateway: () => '',
  saveState: () => '',
  start: ({ services }) => services.join(','),
  awaitHealthy: ({ services }) => services.join(','),
  removeServices: ({ services }) => services.join(','),
};

/** Name of a step in the journal and in events: `writeFile:.env`. `keyed` distinguishes two of one name in a plan. */
export function stepKey(step: Step): string {
  const subject = (subjects[step.do] as (step: Step) => string)(step);
  return subject === '' ? step.do : `${step.do}:${subject}`;
}

/** The steps of a plan with their names, each once: the second of a kind ends in `#2`. The same plan gives the same names. */
export function keyed(plan: Plan): readonly KeyedPhase[] {
  const seen = new Map<string, number>();
  const keyOf = (step: Step): string => {
    const name = stepKey(step);
    const count = (seen.get(name) ?? 0) + 1;
    seen.set(name, count);
    return count === 1 ? name : `${name}#${count}`;
  };
  return plan.phases.map((phase) => ({ phase, steps: phase.steps.map((step) => ({ key: keyOf(step), step })) }));
}
