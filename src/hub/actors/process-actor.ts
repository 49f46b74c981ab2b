import { fromCallback } from 'xstate';
import type { HandOverOrder, ProcessCommand, ProcessEvent, ProcessInput } from '../../../machines/index.ts';
import { messageOf } from '../../lib/index.ts';
import { type PlacedProcess, PlaceError, type ReachListener } from '../../places/index.ts';
import { isPermanentSpawnError, monotonicMs, SpawnError } from '../../supervise/index.ts';

/** Process under the control of its driver. */
export type DrivenProcess = Omit<PlacedProcess, 'handle'>;

/** Spawns or adopts one kind of process. Both are called at most once per incarnation. */
export interface ProcessSource {
  readonly spawn: (onReach: ReachListener) => Promise<DrivenProcess>;
  /** The process that is there already; null when it has gone and a new one should take its place. */
  readonly adopt: () => DrivenProcess | null | Promise<DrivenProcess>;
  /** Calls `listener` whenever an adopted process may have ended. Returns a function that removes it. */
  readonly watch?: (listener: () => void) => () => void;
  /** Called before SIGTERM is sent to the process. */
  readonly beforeTermination?: (handOver: HandOverOrder | undefined) => void;
  /** Ends descendants that have left the group and lost the marker; called when no other process is left. */
  readonly sweep?: () => Promise<void>;
  /** The process and all its descendants have ended. */
  readonly onGone: () => void;
  /** The process was not signalled, because it is not proved to be ours. */
  readonly onUnverified: (pid: number) => void;
}

/**
 * The driver behind a machine's `process` actor: reports SPAWNED, REFUSED, ENDING and EXITED of its incarnation and obeys
 * TERMINATE and KILL, also those that came before the process did. EXITED is sent only when the whole group is gone,
 * so no state that follows it can meet a leftover. A process in `watch` mode is external: never signalled.
 * Stopping the actor releases the process without ending it.
 */
export function processActor(sourceOf: (input: ProcessInput) => ProcessSource) {
  return fromCallback<ProcessCommand, ProcessInput>(({ input, receive, sendBack }) => {
    const { incarnation, mode } = input;
    const source = sourceOf(input);
    let managed: DrivenProcess | null = null;
    let pending: ProcessCommand | null = null;
    let released = false;
    let leave = () => {};
    const report = (event: ProcessEvent) => {
      if (!released) sendBack(event);
    };

    function obey(): void {
      if (!managed || !pending) return;
      const { pid } = managed;
      const note = (isUnverified: boolean) => isUnverified && source.onUnverified(pid);
      if (pending.type === 'KILL') {
        void managed.kill().then(({ uncertain }) => note(uncertain));
      } else {
        source.beforeTermination?.(pending.handOver);
        note(managed.terminate() === 'unknown');
      }
      pending = null;
    }

    const onReach: ReachListener = (isLost) => report({ type: isLost ? 'PLACE.LOST' : 'PLACE.BACK', incarnation });

    async function follow(child: DrivenProcess): Promise<void> {
      child.onReach?.(onReach);
      leave = source.watch?.(child.poll) ?? leave;
      const { exitCode, signal, cause } = await child.exited;
      leave();
      if (mode !== 'watch') {
        report({ type: 'PROCESS.ENDING', incarnation });
        await child.sweep();
        await child.gone();
        await source.sweep?.();
      }
      if (!released) source.onGone();
      report({ type: 'PROCESS.EXITED', incarnation, exitCode, signal, ...(cause && { cause }), at: monotonicMs() });
    }

    async function begin(): Promise<void> {
      try {
        const found = mode === 'spawn' ? null : source.adopt();
        // A process of this machine is adopted at once.
        managed = (found instanceof Promise ? await found : found) ?? (await source.spawn(onReach));
      } catch (error) {
        return report({ type: 'PROCESS.REFUSED', incarnation, ...refusalOf(error), at: monotonicMs() });
      }
      if (released) return managed.detach();
      report({ type: 'PROCESS.SPAWNED', incarnation, pid: managed.pid });
      obey();
      await follow(managed);
    }

    receive((command) => {
      if (mode === 'watch') return;
      pending = command;
      obey();
    });
    begin().catch((error: unknown) => {
      // A container that is released while its engine is away cannot be followed to its end.
      if (!released) throw error;
    });
    return () => {
      released = true;
      leave();
      managed?.detach();
    };
  });
}

function refusalOf(error: unknown) {
  const message = messageOf(error);
  if (error instanceof PlaceError) return { error: message, kind: error.kind, isRetryable: error.isRetryable };
  return { error: message, isRetryable: !(error instanceof SpawnError && isPermanentSpawnError(error.code)) };
}
