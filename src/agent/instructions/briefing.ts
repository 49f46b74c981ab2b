import type { Briefing } from '../thread-store.ts';
import type { ReadText } from '../tools/index.ts';
import { type InstructionPlaces, rootInstructions } from './agents-md.ts';
import { gitBranch } from './git-branch.ts';

export interface BriefingOptions extends InstructionPlaces {
  readonly read: ReadText;
  /** Day of the briefing; its local date is used. */
  readonly now: Date;
  /** False: files of the workspace give no instructions. */
  readonly hasProjectInstructions: boolean;
  /** List of skills for the model; empty: none. */
  readonly skills: string;
  /** List of types of sub-agents that the user or the project defined; empty: none. */
  readonly agents: string;
}

/** Collects the facts for a new thread. */
export async function makeBriefing(options: BriefingOptions): Promise<Briefing> {
  const { read, now, hasProjectInstructions, workspacePath, skills, agents } = options;
  const [branch, instructions] = await Promise.all([
    gitBranch(read, workspacePath),
    hasProjectInstructions ? rootInstructions(read, options) : [],
  ]);
  return {
    day: dayOf(now),
    ...(branch !== undefined && { branch }),
    instructions,
    ...(skills !== '' && { skills }),
    ...(agents !== '' && { agents }),
  };
}

const dayOf = (now: Date): string =>
  [now.getFullYear(), now.getMonth() + 1, now.getDate()].map((part) => String(part).padStart(2, '0')).join('-');
