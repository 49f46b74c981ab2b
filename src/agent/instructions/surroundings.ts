import { dirname, join, resolve } from 'node:path';
import { type Library, listDescribed } from '../library/index.ts';
import type { Briefing } from '../thread-store.ts';
import type { ReadText, SandboxStatus } from '../tools/index.ts';
import { rootInstructions } from './agents-md.ts';

const branchWords = /^ref: refs\/heads\/([\w./+-]{1,200})\s*$/;
const worktreeWords = /^gitdir: (\S[^\n]{0,1000})\s*$/;
/** Size limit for a file of git, in bytes. */
const maxBytes = 4_096;

/** Machine and user that all threads of a workspace share. */
export interface Surroundings {
  /** The user's home of Oratorio. Absolute. */
  readonly home: string;
  readonly read: ReadText;
  /** Description of the sandbox of commands, in sentences. */
  readonly commands: () => string;
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
  const [branch, instructions] = await Promise.all([
    gitBranch(read, workspacePath),
    hasProjectInstructions ? rootInstructions(read, { home, workspacePath }) : [],
  ]);
  return {
    day: dayOf(new Date()),
    ...(branch !== undefined && { branch }),
    instructions,
    ...(skills !== '' && { skills }),
    ...(agents !== '' && { agents }),
  };
}

const dayOf = (now: Date): string =>
  [now.getFullYear(), now.getMonth() + 1, now.getDate()].map((part) => String(part).padStart(2, '0')).join('-');

const nothing: ReadText = { inWorkspace: async () => undefined, ofUser: async () => undefined };

/** Describes the sandbox of commands for a model. */
export function describeCommands({ available }: Pick<SandboxStatus, 'available'>, network: 'allow' | 'deny'): string {
  if (!available) return 'Commands run with the rights of the user.';
  const walls = 'Commands run in a sandbox: they write only to the workspace and /tmp';
  return network === 'allow' ? `${walls}; the network is open.` : `${walls}, without network.`;
}

/** Branch that is checked out in a workspace; undefined without a repository or a branch. Does not run git, which a repository could configure. */
async function gitBranch(read: ReadText, workspacePath: string): Promise<string | undefined> {
  const head =
    (await read.inWorkspace(join('.git', 'HEAD'), workspacePath, maxBytes)) ??
    (await headOfWorktree(read, workspacePath));
  return branchWords.exec(head?.text ?? '')?.[1];
}

/** Reads the HEAD of a worktree, whose `.git` is a file that names the directory of its HEAD. */
async function headOfWorktree(read: ReadText, workspacePath: string) {
  const file = await read.inWorkspace('.git', workspacePath, maxBytes);
  const [, directory] = worktreeWords.exec(file?.text ?? '') ?? [];
  if (directory === undefined) return undefined;
  const place = resolve(workspacePath, directory);
  // Only where git puts it: the file could name any other directory.
  return dirname(place).endsWith(join('.git', 'worktrees')) ? read.ofUser(join(place, 'HEAD'), maxBytes) : undefined;
}
