import type { Plan, ServiceName } from './plan.ts';
import { awaitHealthy, phase, start } from './steps.ts';

/** Containers are made anew: a mere restart keeps the environment they were made with. */
export const planRestart = (directory: string, services: readonly ServiceName[]): Plan => ({
  command: 'restart',
  directory,
  onFailure: 'keep',
  reveals: [],
  notes: [],
  phases: [
    phase('validate', 'Checking the composition', [{ do: 'checkComposition' }]),
    // A stack that was only written has none yet.
    phase('images', 'Checking the images', [{ do: 'pullImages', services }]),
    phase('start', `Making ${services.join(', ')} anew`, [start(services, true)]),
    phase('health', 'Waiting until everything is healthy', [awaitHealthy(services)]),
  ],
});
