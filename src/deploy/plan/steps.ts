import { defaults } from '../defaults.ts';
import { stackFiles } from '../layout.ts';
import type { Phase, PhaseName, ServiceName, Step } from '../stack-plan.ts';

const { fileModes } = defaults;

export const phase = (name: PhaseName, title: string, steps: readonly Step[] = []): Phase => ({ name, title, steps });

/** `.env`: holds secrets, and what else the user has written into it. */
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

/** A file that the user may have changed: the content is what he has, with our change in it. */
export const writeTheirs = (path: string, content: string, mode: number = fileModes.config): Step => ({
  do: 'writeFile',
  path,
  mode,
  content,
  isSecret: false,
  owner: 'theirs',
});

export const start = (services: readonly ServiceName[], recreate: boolean): Step => ({
  do: 'start',
  services,
  recreate,
});

export const awaitHealthy = (services: readonly ServiceName[]): Step => ({ do: 'awaitHealthy', services });
