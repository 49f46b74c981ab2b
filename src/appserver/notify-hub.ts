import { join } from 'node:path';
import * as v from 'valibot';
import type { StoredThread } from '../agent/index.ts';
import { proveServer } from '../client/index.ts';
import { isLoopback } from '../lib/index.ts';
import type { Logger } from '../log/index.ts';
import {
  type HealthReport,
  HealthReported,
  HubLock,
  type InputPart,
  type LaunchDocument,
  type NotificationInput,
  type Turn,
} from '../protocol/index.ts';
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
 * nothing else but report health. A Hub that is not there is no fault of a turn, so failures are only for the curious.
 */
export async function notifyHub(
  launch: LaunchDocument,
  notification: NotificationInput,
  logger: Logger,
): Promise<void> {
  try {
    const { status } = await postToHub(launch, '/v1/notifications/request', notification);
    if (status !== 200) logger.debug('the Hub did not take a notification', { status });
  } catch (error) {
    logger.debug('could not notify the Hub', { error });
  }
}

/** Reports the health of the workspace to the Hub that serves now; true when it took the report. Never throws. */
export async function reportToHub(launch: LaunchDocument, report: HealthReport, logger: Logger): Promise<boolean> {
  try {
    const { status, body } = await postToHub(launch, '/v1/appservers/report', report);
    const answer = v.safeParse(v.pipe(v.string(), v.parseJson(), HealthReported), body);
    if (status === 200 && answer.success) return answer.output.accepted;
    logger.debug('the Hub did not take a report', { status });
    return false;
  } catch (error) {
    logger.debug('could not report to the Hub', { error });
    return false;
  }
}

async function postToHub(launch: LaunchDocument, path: string, document: unknown): Promise<Answer> {
  const lock = readHubLock(launch.hubStatePath);
  const url = hubUrl(lock, path);
  // A Hub that was killed leaves its address behind, and another user may have taken the port.
  await proveServer({ role: 'hub', url: lock.apiBaseUrl, token: lock.token, timeoutMs: deadlineMs });
  return post(url, launch.notificationToken, document);
}

/** @throws Error without a published address */
function readHubLock(statePath: string): HubLock {
  const lock = readJson(join(statePath, 'hub.lock'), HubLock);
  if (lock.kind !== 'ok') throw new Error(`hub.lock is ${lock.kind}`);
  return lock.value;
}

/** @throws Error for an address that is not of this machine: the token stays here */
function hubUrl({ apiBaseUrl }: HubLock, path: string): URL {
  const url = new URL(path, apiBaseUrl);
  if (url.protocol !== 'http:' || !isLoopback(url.hostname)) throw new Error('hub.lock names no loopback address');
  return url;
}

interface Answer {
  readonly status: number;
  /** Beginning of the response's body. */
  readonly body: string;
}

const answerBytes = 1_024;

async function post(url: URL, token: string, document: unknown): Promise<Answer> {
  // `import` would evaluate its `WebSocket` getter, and with it load a whole client: 40 ms of processor time.
  const { request } = process.getBuiltinModule('node:http');
  const payload = JSON.stringify(document);
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
      let body = '';
      response.setEncoding('utf8').on('data', (text: string) => {
        if (body.length < answerBytes) body += text;
      });
      response.on('error', reject);
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
    });
    outgoing.end(payload);
  });
}
