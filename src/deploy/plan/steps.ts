import { defaults } from '../defaults.ts';
import { stackFiles } from '../layout.ts';
import type { Phase, PhaseName, ServiceName, Step } from '../stack-plan.ts';

const { fileModes } = defaults;

export const phase = (name: PhaseName, title: string, steps: readonly Step[] = []): Phase => ({ name, title, steps });

/** `.env`: holds secrets, and further lines of the user. */
export const writeEnv = (content: string): Step => ({
  do: 'writeFile',
  path: stackFiles.env,
  mode: fileModes.secret,
  content,
  isSecret: true,
  owner: 'theirs',
});

/** A file that only this tool writes. */
export const writeOurs = (path: string, content: string): Step => ({
  do: 'writeFile',
  path,
  mode: fileModes.public,
  content,
  isSecret: false,
  owner: 'ours',
});

/** A file that the user may have changed: the content is the user's, with our change in it. */
export const writeTheirs = (path: string, content: string, mode: number = fileModes.config): Step => ({
  do: 'writeFile',
  path,
  mode,
  content,
  isSecret: false,
  owner: 'theirs',
});

/** Ports of a stack on the loopback of its host. */
export interface StackPorts {
  readonly backend: number;
  readonly agent: number;
  readonly dashboard: number;
}

/** Ports of the services that are about to start. One that its service publishes already counts as free. */
export const portChecks = (
  { backend, agent, dashboard }: StackPorts,
  services: readonly ServiceName[] = ['agent', 'backend'],
): readonly Step[] =>
  (
    [
      { do: 'checkPorts', ports: [backend], host: '127.0.0.1', service: 'backend' },
      { do: 'checkPorts', ports: [agent, dashboard], host: '127.0.0.1', service: 'agent' },
    ] as const
  ).filter(({ service }) => services.includes(service));

export const start = (services: readonly ServiceName[], recreate: boolean): Step => ({
  do: 'start',
  services,
  recreate,
});

export const awaitHealthy = (services: readonly ServiceName[]): Step => ({ do: 'awaitHealthy', services });
