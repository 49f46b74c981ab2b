import { composeFile } from '../files/index.ts';
import { stackFiles } from '../layout.ts';
import type { Plan, ServiceName } from '../stack-plan.ts';
import { type AgentMove, agentMoveSteps } from './agent-home.ts';
import { awaitHealthy, phase, portChecks, type StackPorts, start, writeOurs } from './steps.ts';

/** A stack of version 0.1, whose agent server has its settings in the workspace. */
export interface RestartMove extends AgentMove {
  readonly isSelinux: boolean;
}

/** Note to the operator about the move. */
export const movedNote = `The settings of the agent server move to ${stackFiles.agentConfig}: look through them, they are trusted there.`;

/** Makes the containers again: a mere restart keeps the environment they were made with. */
export const planRestart = (
  directory: string,
  services: readonly ServiceName[],
  ports: StackPorts,
  move: RestartMove | null = null,
): Plan => ({
  command: 'restart',
  directory,
  onFailure: 'keep',
  reveals: [],
  notes: move === null ? [] : [movedNote],
  phases: [
    ...(move === null
      ? []
      : [
          phase('files', 'Moving the settings of the agent server', [
            ...agentMoveSteps(move),
            writeOurs(stackFiles.compose, composeFile({ isSelinux: move.isSelinux })),
          ]),
        ]),
    phase('validate', 'Checking the composition', [{ do: 'checkComposition' }]),
    // A stack that was only written has none yet.
    phase('images', 'Checking the images', [
      { do: 'pullImages', services },
      ...(services.includes('webhook-gateway') ? [{ do: 'checkGateway' } as const] : []),
      ...portChecks(ports, services),
    ]),
    phase('start', `Making ${services.join(', ')} anew`, [start(services, true)]),
    phase('health', 'Waiting until everything is healthy', [awaitHealthy(services)]),
  ],
});
