import { changeEnv, composeFile, overlayFile } from '../files/index.ts';
import { stackFiles } from '../layout.ts';
import type { Plan, ServiceName } from '../stack-plan.ts';
import { type AgentMove, agentMoveSteps } from './agent-home.ts';
import { movedNote } from './restart.ts';
import { awaitHealthy, phase, portChecks, type StackPorts, start, writeEnv, writeOurs } from './steps.ts';

export interface UpgradeFacts {
  readonly directory: string;
  readonly env: string;
  readonly isSelinux: boolean;
  readonly hasIngress: boolean;
  /** Pinned images: by digest, or by id where no registry has them. */
  readonly images: { readonly stack: string; readonly gateway: string };
  /** Content of `.server/images.json`: the requested images, and their pins. */
  readonly record: string;
  readonly ports: StackPorts;
  /** Null: the settings of the agent server are in their place. */
  readonly move: AgentMove | null;
  readonly notes: readonly string[];
}

/** Another version of everything, one service after the other, and back when one does not become healthy. */
export function planUpgrade(facts: UpgradeFacts): Plan {
  const { directory, env, isSelinux, hasIngress, images, record, ports, move, notes } = facts;
  const services: readonly ServiceName[] = ['agent', 'backend', ...(hasIngress ? (['webhook-gateway'] as const) : [])];
  return {
    command: 'upgrade',
    directory,
    onFailure: 'undo',
    reveals: [],
    notes: move === null ? notes : [...notes, movedNote],
    phases: [
      phase('files', 'Writing the new version', [
        writeEnv(changeEnv(env, { ORATORIO_IMAGE: images.stack, ORATORIO_GATEWAY_IMAGE: images.gateway })),
        ...(move === null ? [] : agentMoveSteps(move)),
        writeOurs(stackFiles.compose, composeFile({ isSelinux })),
        ...(hasIngress ? [writeOurs(stackFiles.overlay, overlayFile({ isSelinux }))] : []),
        {
          do: 'writeFile',
          path: stackFiles.images,
          mode: 0o600,
          content: record,
          isSecret: false,
          owner: 'theirs',
        },
      ]),
      // All checks pass before a service is stopped.
      phase('validate', 'Checking the composition', [
        { do: 'checkComposition' },
        { do: 'pullImages', services },
        ...(hasIngress ? [{ do: 'checkGateway' } as const] : []),
        ...portChecks(ports),
      ]),
      phase('backup', 'Saving the state of the backend', [{ do: 'saveState' }]),
      phase(
        'start',
        'Starting the new version',
        services.flatMap((service) => [start([service], true), awaitHealthy([service])]),
      ),
      phase('health', 'Waiting until everything is healthy', [awaitHealthy(services)]),
    ],
  };
}
