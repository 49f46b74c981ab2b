import { setTimeout as sleep } from 'node:timers/promises';
import type { ProcessIdentity } from '../protocol/index.ts';
import { isAlive } from './identity.ts';
import type { ProcessTree, SweepReport } from './process-tree.ts';
import { type SignalResult, sendToGroup, signalLeader } from './signals.ts';

/** End of a process. `observed` is false for an adopted one: only a parent learns exit code and signal. */
export interface ProcessExit {
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly observed: boolean;
  /** Cause outside of the process; completes “The agent server …”. Absent: none is known. */
  readonly cause?: string | undefined;
}

/** Where a managed process writes. */
export interface ProcessLogs {
  readonly stdout: string;
  readonly stderr: string;
}

/** A process that we answer for, spawned by us or adopted, with the group it leads and all its descendants. */
export interface ManagedProcess {
  readonly identity: ProcessIdentity;
  readonly pid: number;
  readonly marker: string;
  readonly logs: ProcessLogs;
  /** The process itself has ended; members of its group may live on. Never rejects. */
  readonly exited: Promise<ProcessExit>;
  /** SIGTERM and SIGCONT to the group, at once. Does not wait. `unknown`: not sent, because the process is not proved to be ours. */
  terminate(): SignalResult;
  /** SIGKILL to the group and to all who carry the marker, until none is left or `killVerifyMs` are over. */
  kill(): Promise<SweepReport>;
  /** Ends the remaining processes, a live leader too: SIGTERM, shortly after SIGKILL. To be called after every exit. */
  sweep(): Promise<SweepReport>;
  /** Resolves when the leader has gone, its group is empty and no process carries the marker. Rejects only by `signal`. */
  gone(signal?: AbortSignal): Promise<void>;
  /** Checks now whether an adopted process has ended. */
  poll(): void;
  /** Stops watching; the process lives on. `exited` then stays pending for an adopted one. */
  detach(): void;
}

/** The differences between `spawnManaged` and `adoptManaged`. */
export interface ProcessSource {
  readonly tree: ProcessTree;
  readonly logs: ProcessLogs;
  readonly exited: Promise<ProcessExit>;
  /** All output is in the log files; absent when the process writes to them itself. */
  readonly drained?: Promise<void>;
  /** Whether it is a child of ours that has not been reaped: then no other process can have its pid, on any system. */
  readonly isOurChild: () => boolean;
  /** The process has gone: `exited` must resolve now, even if nothing else keeps the event loop alive. */
  readonly poll: () => void;
  readonly detach: () => void;
}

/** How long the last output of a process that has gone may take to its log file. */
const drainMs = 2_000;

/** The part that is the same for children and for adopted processes. */
export function manage({ tree, logs, exited, drained, isOurChild, poll, detach }: ProcessSource): ManagedProcess {
  const identity = tree.leader;
  const signal = (name: NodeJS.Signals): SignalResult => {
    if (!isOurChild() && !tree.provesLeader()) return isAlive(identity) === 'gone' ? 'gone' : 'unknown';
    const result = signalLeader(identity, name);
    return result === 'unknown' && isOurChild() ? sendToGroup(identity.pid, name) : result;
  };
  const end = async (graceMs?: number): Promise<SweepReport> => {
    const report = await tree.end(graceMs);
    poll();
    return report;
  };
  return {
    identity,
    pid: identity.pid,
    marker: tree.marker,
    logs,
    exited,
    poll,
    detach,
    terminate() {
      const result = signal('SIGTERM');
      if (result === 'sent') signal('SIGCONT');
      return result;
    },
    kill() {
      signal('SIGKILL');
      return end(0);
    },
    sweep: () => end(),
    async gone(giveUp) {
      await tree.gone(giveUp);
      poll();
      await exited;
      // A descendant that escaped without our marker may hold the output open for as long as it lives.
      if (drained) await Promise.race([drained, sleep(drainMs, undefined, { ref: false })]);
    },
  };
}
