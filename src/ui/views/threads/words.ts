import { visible } from '../../../lib/browser.ts';
import type { HubThread, ThreadWorkspace } from '../../../protocol/index.ts';

/** Name of a conversation; its id until it has one. */
export const nameOf = ({ name, threadId }: Pick<HubThread, 'name' | 'threadId'>): string =>
  visible(name ?? threadId, { multiline: false });

const turns: Readonly<Record<NonNullable<HubThread['lastTurn']>['status'], string>> = {
  completed: 'ok',
  failed: 'failed',
  cancelled: 'cancelled',
  // The agent server has ended: the next one marks the turn as cancelled.
  running: 'broken off',
  waitingApproval: 'broken off',
};

/** Present activity of a conversation, or the end of its last turn. */
export function stateOf({ activity, status, lastTurn }: Pick<HubThread, 'activity' | 'status' | 'lastTurn'>): string {
  if (activity === 'waiting') return 'Waits for you';
  if (activity === 'running') return 'Running';
  const word = lastTurn === null ? 'No turn yet' : `Last turn ${turns[lastTurn.status]}`;
  return status === 'archived' ? `Archived · ${word}` : word;
}

/** Whether conversations of a workspace can be changed now, and if not, why. */
export function whyFixed({ state, stateWord }: Pick<ThreadWorkspace, 'state' | 'stateWord'>): string | null {
  if (state === 'running' || state === 'unhealthy') return null;
  return `The workspace is ${stateWord}: start it to change its conversations.`;
}
