import type { Phase, Plan, Step } from '../stack-plan.ts';

/** A plan for display before it is carried out: actions and places, without secrets. */
export interface PlanView {
  readonly command: string;
  readonly directory: string;
  readonly onFailure: Plan['onFailure'];
  readonly phases: readonly { readonly name: string; readonly title: string; readonly steps: readonly string[] }[];
  readonly notes: readonly string[];
}

export const viewOf = ({ command, directory, onFailure, phases, notes }: Plan): PlanView => ({
  command,
  directory,
  onFailure,
  phases: phases.map(({ name, title, steps }: Phase) => ({ name, title, steps: steps.map(sentenceOf) })),
  notes,
});

const octal = (mode: number): string => `0${mode.toString(8)}`;

function sentenceOf(step: Step): string {
  switch (step.do) {
    case 'makeDirectory':
      return `make ${step.path}/ (${octal(step.mode)})`;
    case 'writeFile':
      return `write ${step.path} (${octal(step.mode)}${step.isSecret ? ', holds secrets' : ''})`;
    case 'removeFile':
      return `remove ${step.path}`;
    case 'clone':
      return `clone ${step.url} into ${step.path}`;
    case 'giveTo':
      return `give ${step.path} to user ${step.uid}`;
    case 'checkPorts':
      return `check that ${step.host === '*' ? 'every address' : step.host} has port ${step.ports.join(' and ')} free for ${step.service}`;
    case 'pullImages':
      return `fetch the images of ${step.services.join(', ')}, where they are missing`;
    case 'checkComposition':
      return 'check the merged composition';
    case 'checkGateway':
      return 'have the gateway check its configuration';
    case 'saveState':
      return "save the backend's state";
    case 'start':
      return `start ${step.services.join(', ')}${step.recreate ? ', recreated' : ''}`;
    case 'awaitHealthy':
      return `wait until ${step.services.join(', ')} ${step.services.length === 1 ? 'is' : 'are'} healthy`;
    case 'removeServices':
      return `stop and remove ${step.services.join(', ')}`;
  }
}
