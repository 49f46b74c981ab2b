/** Finds the Hub of a user home. Reads a file and checks a process: Node only, unlike the rest of this room. */

import { join } from 'node:path';
import { messageOf } from '../lib/index.ts';
import { defaults, type HubLock } from '../protocol/index.ts';
import { isAlive, lockHolder, readIdentity, readJson } from '../supervise/index.ts';
import { LockAnswer, StatusAnswer } from './answers.ts';
import { ServerNotProvenError } from './errors.ts';
import { callHubJson, isLoopbackHttp } from './http.ts';
import { proveServer } from './proof.ts';

/** Reason why the lock file leads to no Hub. */
export type NoHubReason =
  | 'noLockFile'
  | 'invalidLockFile'
  | 'notLoopback'
  | 'processGone'
  | 'notReachable'
  | 'urlMismatch'
  | 'pidMismatch'
  | 'versionMismatch'
  | 'missingCapability'
  | 'notProven';

export type Discovery =
  | { readonly kind: 'found'; readonly lock: HubLock; readonly status: StatusAnswer }
  | { readonly kind: 'none'; readonly why: NoHubReason; readonly message: string };

export interface DiscoverOptions {
  /** User home; the lock file is `<home>/hub/hub.lock`. */
  readonly home: string;
  readonly statusTimeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

const none = (why: NoHubReason, message: string): Discovery => ({ kind: 'none', why, message });

/**
 * Where the Hub of `home` publishes its address.
 *
 * @example const file = hubLockFile(home); // <home>/hub/hub.lock
 */
export const hubLockFile = (home: string): string => join(home, 'hub', 'hub.lock');

/** Reads the published address, which is not verified yet. */
function readLock(home: string): HubLock | Discovery {
  const file = hubLockFile(home);
  const read = readJson(file, LockAnswer);
  if (read.kind === 'missing') return none('noLockFile', `There is no ${file}: no Hub is running.`);
  if (read.kind === 'invalid') return none('invalidLockFile', `${file} ${read.problem}.`);
  const lock = read.value;
  if (!isLoopbackHttp(lock.apiBaseUrl)) {
    return none('notLoopback', `${file} names ${lock.apiBaseUrl}, which is not a loopback HTTP address.`);
  }
  // Unknown counts as alive: the proof decides.
  const isGone = lock.identity ? isAlive(lock.identity) === 'gone' : readIdentity(lock.pid) === 'gone';
  if (isGone) {
    return none('processGone', `The Hub of ${file} (process ${lock.pid}) is not running any more.`);
  }
  return lock;
}

const sameUrl = (one: string, other: string): boolean => URL.canParse(one) && new URL(one).href === new URL(other).href;

function compare(lock: HubLock, status: StatusAnswer): Discovery {
  const { capabilities } = status;
  if (!sameUrl(status.apiBaseUrl, lock.apiBaseUrl)) {
    return none('urlMismatch', `${lock.apiBaseUrl} says that it is ${status.apiBaseUrl}.`);
  }
  if (status.pid !== lock.pid) {
    return none('pidMismatch', `${lock.apiBaseUrl} is served by process ${status.pid}, not ${lock.pid}.`);
  }
  if (status.hubVersion !== lock.version) {
    return none('versionMismatch', `${lock.apiBaseUrl} is version ${status.hubVersion}, not ${lock.version}.`);
  }
  for (const needed of ['appServerManagement', 'events'] as const) {
    if (!capabilities[needed]) return none('missingCapability', `${lock.apiBaseUrl} does not offer ${needed}.`);
  }
  return { kind: 'found', lock, status };
}

/**
 * Has the Hub of `lock` prove that it holds the token (docs/server-proof.md). A Hub of an earlier version has no proof route:
 * then the kernel must say that its process holds `hub.mutex`, which lies in a directory that only this user can enter.
 *
 * @throws ServerNotProvenError, the reason of `signal`
 */
export async function proveHub(
  home: string,
  { apiBaseUrl, token, pid }: Pick<HubLock, 'apiBaseUrl' | 'token' | 'pid'>,
  { signal, timeoutMs }: { readonly signal?: AbortSignal | undefined; readonly timeoutMs?: number | undefined } = {},
): Promise<void> {
  try {
    await proveServer({ role: 'hub', url: apiBaseUrl, token, signal, timeoutMs });
  } catch (error) {
    const isEarlier = error instanceof ServerNotProvenError && error.reason === 'noRoute';
    if (!isEarlier || lockHolder(join(home, 'hub', 'hub.mutex')) !== pid) throw error;
  }
}

/**
 * Finds the Hub of a user home, trusting its lock file only after verification (specification §4.2 rule 3): the process is
 * alive, `GET /v1/status` answers in time, and the URL, process id, version and capabilities it returns are as published. All
 * of that another user's program can say too after a Hub was killed, so the Hub also proves that it holds the token.
 * Starts nothing. Throws only the reason of `signal`.
 *
 * @example const found = await discoverHub({ home });
 */
export async function discoverHub({ home, statusTimeoutMs, signal }: DiscoverOptions): Promise<Discovery> {
  signal?.throwIfAborted();
  const lock = readLock(home);
  if ('kind' in lock) return lock;
  const timeout = AbortSignal.timeout(statusTimeoutMs ?? defaults.client.statusTimeoutMs);
  try {
    const proof = proveHub(home, lock, { signal, timeoutMs: statusTimeoutMs }).catch((error: unknown) => error);
    const status = await callHubJson(
      { apiBaseUrl: lock.apiBaseUrl },
      { path: '/v1/status', idempotent: true, signal: signal ? AbortSignal.any([signal, timeout]) : timeout },
      StatusAnswer,
    );
    const compared = compare(lock, status);
    const fault = await proof;
    if (compared.kind === 'none' || fault === undefined) return compared;
    if (fault instanceof ServerNotProvenError) return none('notProven', fault.message);
    throw fault;
  } catch (error) {
    signal?.throwIfAborted();
    const why = timeout.aborted ? 'it does not answer in time' : messageOf(error);
    return none('notReachable', `The status of ${lock.apiBaseUrl} cannot be read: ${why}`);
  }
}
