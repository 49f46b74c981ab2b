import type { StoredThread } from '../agent/index.ts';
import { type FeedNotification, firstWords, type Turn, writtenIn } from '../protocol/index.ts';

const longestBody = 200;

/** Notification for a person about an ended turn, or undefined for one that a user ended. */
export function notificationOf(thread: StoredThread, turn: Turn): FeedNotification | undefined {
  if (turn.status !== 'completed' && turn.status !== 'failed') return undefined;
  const isFailure = turn.status === 'failed';
  const about = thread.displayName || requestOf(turn);
  const body = isFailure ? (turn.error?.message ?? '') : about;
  return {
    kind: isFailure ? 'turnFailed' : 'turnCompleted',
    title: isFailure ? 'A turn failed' : 'A turn is complete',
    ...(body !== '' && { body: body.slice(0, longestBody) }),
    severity: isFailure ? 'error' : 'success',
    source: 'appserver',
  };
}

function requestOf(turn: Turn): string {
  const asked = turn.items.find((item) => item.type === 'userMessage');
  return firstWords(asked ? writtenIn(asked.input) : '');
}
