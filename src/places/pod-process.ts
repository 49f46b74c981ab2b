import { constants } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { visible } from '../lib/index.ts';
import type { PodHandle } from '../protocol/index.ts';
import type { ProcessExit } from '../supervise/index.ts';
import { EngineRefusal, EngineUnreachableError } from './engine-api.ts';
import { watchReach } from './engine-reach.ts';
import type { KubeApi } from './kube-api.ts';
import type { Pod } from './kube-types.ts';
import { type PlacedProcess, PlaceError } from './place.ts';
import { renewalMs, type WorkspaceLease } from './pod-lease.ts';
import type { Relay } from './relay.ts';

const retryMs = 500;
/** Longest pause between two requests to delete a pod, which a lost node may delay without end. */
const longestRetryMs = 5_000;
const signalBase = 128;
/** Time for an orderly end, in seconds. Never 0: the API server would forget a pod that may still run. */
const grace = { terminate: 60, kill: 1 } as const;

export interface PodProcessOptions {
  readonly api: KubeApi;
  readonly handle: PodHandle;
  readonly lease: WorkspaceLease;
  readonly relay: Relay;
  /** Proves ownership. A pod that fails this check is neither followed nor ended. */
  readonly isOurs: (pod: Pod) => boolean;
  /** Takes the reason of an end that the agent server did not choose. */
  readonly onReason: (reason: string) => void;
  /** Ends the log keeper. */
  readonly forget: () => void;
}

/** The node of the pod does not report, so the pod may run or not. */
export const isNodeLost = ({ status: { reason, conditions } }: Pod): boolean =>
  reason === 'NodeLost' || (conditions ?? []).some(({ type, status }) => type === 'Ready' && status === 'Unknown');

export const hasEnded = ({ status: { phase } }: Pod): boolean => phase === 'Succeeded' || phase === 'Failed';

/** Exit of a pod that has ended, and the reason if the cluster ended it, e.g. `OOMKilled` or `Evicted`. */
export function endOf({ status }: Pod): { readonly code: number | null; readonly reason: string } {
  const terminated = status.containerStatuses?.find(({ state }) => state?.terminated)?.state?.terminated;
  const ownReason = ['Completed', 'Error'].includes(terminated?.reason ?? '') ? '' : terminated?.reason;
  const words = [status.reason || ownReason, status.message || terminated?.message].filter(Boolean).join(': ');
  return { code: terminated?.exitCode ?? null, reason: words.slice(0, 1_000) };
}

/**
 * Follows a pod. Reads it again after each change; repeats a deletion until the cluster has accepted it. The uid of the pod is a
 * precondition of every deletion. A cluster or a node that does not answer leaves the state unknown.
 */
export function podProcess(options: PodProcessOptions): PlacedProcess {
  const { api, handle, lease, relay, forget, isOurs, onReason } = options;
  const { name } = handle;
  const following = new AbortController();
  const reach = watchReach({ answers: () => poll().then(Boolean, () => false) });
  const renewal = setInterval(() => void lease.hold().catch(() => undefined), renewalMs).unref();

  /** Reads the pod. @returns false while its node does not report */
  async function poll(): Promise<boolean> {
    const found = await api.pod(name);
    return !(found && isOurs(found) && isNodeLost(found));
  }

  /** Repeats the work until the cluster does it. A refusal does not show the state of the pod. */
  async function persist<T>(work: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await work();
      } catch (error) {
        const isKnown =
          error instanceof EngineUnreachableError || error instanceof EngineRefusal || error instanceof PlaceError;
        if (following.signal.aborted || !isKnown) throw error;
        reach.report(true);
        await pause(retryMs, undefined, { signal: following.signal, ref: false });
      }
    }
  }

  /** Pod of this start; undefined if it no longer exists or another pod has its name. */
  async function inspect(): Promise<Pod | undefined> {
    const found = await persist(() => api.pod(name));
    const own = found && isOurs(found) ? found : undefined;
    reach.report(own !== undefined && isNodeLost(own));
    return own;
  }

  /** Logs the reason. The end of the pod counts even if the log cannot be written, e.g. on a full disk. */
  function noteReason(reason: string): void {
    try {
      onReason(reason);
    } catch {
      // The log is the only place for the reason.
    }
  }

  /** Exit code, null for a pod that was removed before its exit code was read; and the cause, if the cluster names one. */
  async function end(): Promise<Pick<ProcessExit, 'cause'> & { readonly code: number | null }> {
    for (let waits = 0; ; waits += 1) {
      const found = await inspect();
      if (!found) return { code: null };
      if (hasEnded(found)) {
        const { code, reason } = endOf(found);
        if (reason === '') return { code };
        noteReason(reason);
        return { code, cause: `was ended by the cluster (${visible(reason, { multiline: false })})` };
      }
      // A server that ends each watch at once would be asked without end.
      if (waits > 0) await pause(retryMs / 5, undefined, { signal: following.signal, ref: false });
      await api.changed(name, found.metadata.resourceVersion, following.signal).catch(async () => {
        following.signal.throwIfAborted();
        await pause(retryMs, undefined, { signal: following.signal, ref: false });
      });
    }
  }

  const exited = new Promise<ProcessExit>((resolve) => {
    end().then(
      ({ code, cause }) => {
        const number = code !== null && code > signalBase ? code - signalBase : null;
        const signal = Object.entries(constants.signals).find(([, each]) => each === number)?.[0] ?? null;
        resolve({ exitCode: signal === null ? code : null, signal, observed: code !== null, cause });
      },
      // Detached: the process continues.
      () => undefined,
    );
  });

  async function deletePod(gracePeriodSeconds: number): Promise<boolean> {
    const found = await inspect();
    if (found) await persist(() => api.delete(name, found.metadata.uid, gracePeriodSeconds));
    return found !== undefined;
  }

  async function remove(): Promise<{ readonly uncertain: boolean }> {
    for (let waitMs = retryMs / 10; await deletePod(grace.kill); waitMs = Math.min(waitMs * 2, longestRetryMs)) {
      await pause(waitMs, undefined, { signal: following.signal, ref: false });
    }
    return { uncertain: false };
  }

  function release(): void {
    reach.end();
    clearInterval(renewal);
    following.abort();
    relay.close();
    forget();
  }

  return {
    handle,
    pid: 1,
    exited,
    terminate() {
      deletePod(grace.terminate).catch(() => undefined);
      return 'sent';
    },
    async kill() {
      // A detached pod continues to run.
      await deletePod(grace.kill).catch(() => undefined);
      return { uncertain: false };
    },
    sweep: remove,
    async gone() {
      await remove();
      clearInterval(renewal);
      await lease.release().catch(() => undefined);
      release();
    },
    poll() {},
    detach: release,
    onReach: reach.listen,
  };
}
