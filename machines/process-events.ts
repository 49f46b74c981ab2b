import { messageOf } from '../src/lib/browser.ts';
import type { Failure } from './failure.ts';

/** Events of the driver of an OS process for the machine that owns it. Every event names the incarnation it belongs to. */
export type ProcessEvent =
  | { readonly type: 'PROCESS.SPAWNED'; readonly incarnation: number; readonly pid: number }
  /** The operating system would not start it. `isRetryable` is false when trying again cannot help (no such file). */
  | {
      readonly type: 'PROCESS.REFUSED';
      readonly incarnation: number;
      readonly error: string;
      readonly isRetryable: boolean;
      readonly at: number;
      /** Absent: `startFailed`. */
      readonly kind?: FailureKind;
    }
  /** The place of the process does not answer. The process may still run, and cannot be ended now. */
  | { readonly type: 'PLACE.LOST'; readonly incarnation: number }
  /** The place of the process answers again. */
  | { readonly type: 'PLACE.BACK'; readonly incarnation: number }
  /** The process itself has ended; members of its group may still run. */
  | { readonly type: 'PROCESS.ENDING'; readonly incarnation: number }
  /** The process has ended and its group is verified empty. `exitCode` and `signal` are null when they were not observed. */
  | {
      readonly type: 'PROCESS.EXITED';
      readonly incarnation: number;
      readonly exitCode: number | null;
      readonly signal: string | null;
      /** Cause outside of the process, e.g. a memory limit; completes “The agent server …”. Absent: none is known. */
      readonly cause?: string | undefined;
      readonly at: number;
    };

/** Instructions for the unfinished turns of an agent server that is about to be terminated. */
export interface HandOverOrder {
  readonly reason: 'restart' | 'stop';
  /** Time for the present step of each turn, before it is suspended. */
  readonly withinMs: number;
  /** Turns are cancelled instead of suspended. */
  readonly endsTurns: boolean;
}

/** Commands of a machine to the driver. */
export type ProcessCommand =
  | { readonly type: 'TERMINATE'; readonly handOver?: HandOverOrder }
  | { readonly type: 'KILL' };

/** Source of the process. An external process is watched and never signalled. */
export type ProcessMode = 'spawn' | 'adopt' | 'watch';

/** Input of every actor of a workspace: the workspace and the incarnation it works for. */
export interface OfWorkspace {
  readonly workspacePath: string;
  readonly incarnation: number;
}

export interface ProcessInput extends OfWorkspace {
  readonly mode: ProcessMode;
  /** Number of the request that describes the sidecar; absent for an agent server. */
  readonly sidecar?: number;
}

/** A failure as prepared by an invoked actor: a plain Error counts as `startFailed` and may be tried again. */
export interface ProcessFailure extends Pick<Failure, 'message' | 'isRetryable'> {
  readonly kind: FailureKind;
  /** When it happened; a failure without a time is not counted. */
  readonly at?: number;
  /** The process that has ended unseen. */
  readonly pid?: number;
  readonly lostSidecarPid?: number;
}

export const failureKinds = [
  'startFailed',
  'unhealthy',
  'workspaceLocked',
  'portUnavailable',
  'invalidConfig',
  'workspaceGone',
  'neverStarted',
  'apiProxy',
  'crashed',
  'placeUnavailable',
  'imageMissing',
  'placeRefused',
] as const;
export type FailureKind = (typeof failureKinds)[number];

/** Reads the rejection of an invoked actor: an object that carries a `failure`, or any other error. */
export function processFailureOf(error: unknown): ProcessFailure {
  if (typeof error === 'object' && error !== null && 'failure' in error) return error.failure as ProcessFailure;
  const message = messageOf(error);
  return { kind: 'startFailed', message, isRetryable: true };
}
