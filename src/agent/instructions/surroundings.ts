import type { Briefing } from '../thread-store.ts';
import type { ReadText, SandboxStatus } from '../tools/index.ts';
import { makeBriefing } from './briefing.ts';

/** Machine and user that all threads of a workspace share. */
export interface Surroundings {
  /** The user's home of Oratorio. Absolute. */
  readonly home: string;
  readonly read: ReadText;
  /** Where commands run, in sentences. */
  readonly commands: () => Promise<string>;
}

/** Collects the facts for a new thread. Without surroundings: the day only. */
export async function brief(
  surroundings: Surroundings | undefined,
  workspacePath: string,
  hasProjectInstructions: boolean,
): Promise<Briefing> {
  const { home = '', read = nothing } = surroundings ?? {};
  return makeBriefing({ home, read, workspacePath, hasProjectInstructions, now: new Date() });
}

const nothing: ReadText = { inWorkspace: async () => undefined, ofUser: async () => undefined };

/** Where commands run, for a model. */
export function describeCommands({ available }: Pick<SandboxStatus, 'available'>, network: 'allow' | 'deny'): string {
  if (!available) return 'Commands run with the rights of the user, without a sandbox.';
  const walls = 'Commands run in a sandbox: they write only to the workspace and to /tmp';
  return network === 'allow' ? `${walls}; the network is open.` : `${walls}, and reach no network.`;
}
