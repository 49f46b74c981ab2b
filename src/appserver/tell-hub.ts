import { join } from 'node:path';
import type { StoredThread } from '../agent/index.ts';
import { proveServer } from '../client/index.ts';
import { isLoopback } from '../config/index.ts';
import type { Logger } from '../log/index.ts';
import { HubLock, type InputPart, type LaunchDocument, type NotificationInput, type Turn } from '../protocol/index.ts';
import { readJson } from '../supervise/index.ts';

const deadlineMs = 3_000;
const longestBody = 200;

/** Notification for a person about an ended turn, or undefined for one that a user ended. */
export function notificationOf(thread: StoredThread, turn: Turn): NotificationInput | undefined {
  if (turn.status !== 'completed' && turn.status !== 'failed') return undefined;
  const isFailure = turn.status === 'failed';
  const about = thread.displayName ?? firstWords(turn);
  const body = isFailure ? (turn.error?.message ?? '') : about;
  return {
    workspacePath: thread.workspacePath,
    kind: isFailure ? 'turnFailed' : 'turnCompleted',
    title: isFailure ? 'A turn failed' : 'A turn is complete',
    ...(body !== '' && { body: body.slice(0, longestBody) }),
    severity: isFailure ? 'error' : 'success',
    source: 'appserver',
  };
}

function firstWords(turn: Turn): string {
  const asked = turn.items.find((item) => item.type === 'userMessage');
  const text = asked?.input.find((part): part is Extract<InputPart, { type: 'text' }> => part.type === 'text')?.text;
  return text?.trim().split('\n', 1)[0] ?? '';
}

/**
 * Posts a notification to the Hub that serves now: not the one that started us, it may be another. The token can do
 * nothing else. A Hub that is not there is no fault of a turn, so failures are only for the curious.
 */
export async function tellHub(launch: LaunchDocument, notification: NotificationInput, logger: Logger): Promise<void> {
  try {
    const lock = readHubLock(launch.hubStatePath);
    const url = notificationUrl(lock);
    // A Hub that was killed leaves its address behind, and another user may have taken the port.
    await proveServer({ role: 'hub', url: lock.apiBaseUrl, token: lock.token, timeoutMs: deadlineMs });
    const status = await post(url, launch.notificationToken, notification);
    if (status !== 200) logger.debug('the Hub did not take a notification', { status });
  } catch (error) {
    logger.debug('could not notify the Hub', { error });
  }
}

/** @throws Error without a published address */
function readHubLock(statePath: string): HubLock {
  const lock = readJson(join(statePath, 'hub.lock'), HubLock);
  if (lock.kind !== 'ok') throw new Error(`hub.lock is ${lock.kind}`);
  return lock.value;
}

/** @throws Error for an address that is not of this machine: the token stays here */
function notificationUrl({ apiBaseUrl }: HubLock): URL {
  const url = new URL('/v1/notifications/request', apiBaseUrl);
  if (url.protocol !== 'http:' || !isLoopback(url.hostname)) throw new Error('hub.lock names no loopback address');
  return url;
}

async function post(url: URL, token: string, notification: NotificationInput): Promise<number> {
  const { request } = await import('node:http');
  const payload = JSON.stringify(notification);
  return new Promise((resolve, reject) => {
    const outgoing = request(url, {
      method: 'POST',
      agent: false,
      signal: AbortSignal.timeout(deadlineMs),
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(payload),
      },
    });
    outgoing.on('error', reject);
    outgoing.on('response', (response) => {
      response.resume();
      response.on('error', reject);
      response.on('end', () => resolve(response.statusCode ?? 0));
    });
    outgoing.end(payload);
  });
}
