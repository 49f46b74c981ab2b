import { type Library, listDescribed } from '../library/index.ts';
import type { Briefing } from '../thread-store.ts';
import type { ReadText, SandboxStatus } from '../tools/index.ts';
import { makeBriefing } from './briefing.ts';

/** Machine and user that all threads of a workspace share. */
export interface Surroundings {
  /** The user's home of Oratorio. Absolute. */
  readonly home: string;
  readonly read: ReadText;
  /** Description of the sandbox of commands, in sentences. */
  readonly commands: () => Promise<string>;
  /** Skills of a workspace. Absent: none. */
  readonly library?: Library | undefined;
}

/** Collects the facts for a new thread. Without surroundings: the day only. */
export async function brief(
  surroundings: Surroundings | undefined,
  workspacePath: string,
  hasProjectInstructions: boolean,
): Promise<Briefing> {
  const { home = '', read = nothing, library } = surroundings ?? {};
  // Skills of the workspace are untrusted like its instructions.
  const known = hasProjectInstructions ? library : undefined;
  const skills = known ? listDescribed(known.skills(workspacePath).data) : '';
  const agents = known ? listDescribed(known.agentTypes(workspacePath).data) : '';
  return makeBriefing({ home, read, workspacePath, hasProjectInstructions, skills, agents, now: new Date() });
}

const nothing: ReadText = { inWorkspace: async () => undefined, ofUser: async () => undefined };

/** Describes the sandbox of commands for a model. */
export function describeCommands({ available }: Pick<SandboxStatus, 'available'>, network: 'allow' | 'deny'): string {
  if (!available) return 'Commands run with the rights of the user.';
  const walls = 'Commands run in a sandbox: they write only to the workspace and /tmp';
  return network === 'allow' ? `${walls}; the network is open.` : `${walls}, without network.`;
}
