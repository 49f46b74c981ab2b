/** Forks with files of their own, below their workspace. */
import { type HubClient, HubRequestError, type HubThreadListAnswer } from '../client/index.ts';

type Thread = HubThreadListAnswer['threads'][number];

/** An attempt of a race; a Hub of an earlier version knows neither its agent nor its failure. */
interface ForkRace {
  readonly number: number;
  readonly state: string;
  readonly agent?: string | undefined;
  readonly failure?: { readonly code: string } | undefined;
}

/** A fork of a conversation that works in a directory of its own. */
export interface Fork {
  readonly threadId: string;
  readonly name: string;
  /** Attempt of a race; null: the fork belongs to no race. */
  readonly race: ForkRace | null;
  readonly activity: string;
  readonly directory: string;
  /** Conversation that it was copied from. */
  readonly forkedFromThreadId: string;
  readonly page: string;
}

/** Forks that one answer of the Hub holds. */
const maxForks = 200;

/** Forks by the canonical path of their workspace, the most recently active first. Empty of a Hub that lists none. */
export async function forksByWorkspace(hub: HubClient, signal: AbortSignal): Promise<ReadonlyMap<string, Fork[]>> {
  const found = new Map<string, Fork[]>();
  try {
    const { threads, workspaces } = await hub.threads({ forks: true, limit: maxForks, signal });
    const paths = new Map(workspaces.map(({ workspaceId, workspacePath }) => [workspaceId, workspacePath]));
    for (const thread of threads) {
      const path = paths.get(thread.workspaceId);
      const fork = forkOf(thread);
      if (path !== undefined && fork) found.set(path, [...(found.get(path) ?? []), fork]);
    }
  } catch (error) {
    // A Hub of an earlier version has no list of threads.
    if (!(error instanceof HubRequestError) || error.status !== 404) throw error;
  }
  return found;
}

function forkOf({ threadId, name, activity, fork, actionUrl }: Thread): Fork | undefined {
  if (!fork) return undefined;
  const { directory, forkedFromThreadId, race } = fork;
  return { threadId, name: name ?? threadId, race, activity, directory, forkedFromThreadId, page: actionUrl };
}

/** Activity of a fork, in a word or two. */
export function forkState({ activity, race }: Pick<Fork, 'activity' | 'race'>): string {
  if (activity === 'waiting') return 'waits for you';
  if (activity === 'running') return 'running';
  if (race?.failure) return `failed: ${race.failure.code}`;
  return race ? `check: ${race.state}` : 'fork';
}
