import { isDecided, isWakeable } from '../../machines/index.ts';
import { defaults } from '../protocol/index.ts';
import { hubError } from './errors.ts';
import type { Workspace } from './workspace.ts';

const { wakeMs, wakeWaiting } = defaults.hub;

/** Requests that wait for each workspace. */
const waiting = new WeakMap<Workspace, number>();

/**
 * Starts the agent server of a sleeping workspace and waits until it serves or has failed, at most `wakeMs`. Also waits for a start that
 * another request began. Does nothing in any other state.
 *
 * @throws HttpError `hubStopping`; `workspaceUnavailable` when too many requests wait; the reason of `signal`
 */
export async function awake(workspace: Workspace, signal: AbortSignal): Promise<void> {
  const snapshot = workspace.snapshot();
  if (!isWakeable(snapshot)) return;
  const before = waiting.get(workspace) ?? 0;
  if (before >= wakeWaiting)
    throw hubError('workspaceUnavailable', 'Too many requests wait for the start of this workspace.', {}, undefined, [
      ['retry-after', String(defaults.hub.retryAfterMs / 1_000)],
    ]);
  if (!snapshot.matches('starting')) workspace.send({ type: 'ENSURE' });
  waiting.set(workspace, before + 1);
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  const timer = setTimeout(resolve, wakeMs);
  const onAbort = () => reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  workspace.settled(isDecided).then(resolve, () => reject(hubError('hubStopping', 'The Hub is shutting down.')));
  try {
    signal.throwIfAborted();
    await promise;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
    waiting.set(workspace, (waiting.get(workspace) ?? 1) - 1);
  }
}
