import type { Handle } from '../protocol/index.ts';
import type { Liveness, ProcessExit, SignalResult, SweepReport } from '../supervise/index.ts';

/** Called when a place stops answering, and when it answers again. */
export type ReachListener = (isLost: boolean) => void;

/** Process of a workspace in any place: the part of `ManagedProcess` that the driver of a statechart uses. */
export interface PlacedProcess {
  readonly handle: Handle;
  /** Process id on this machine. */
  readonly pid: number;
  /** Resolves when the process itself has ended. Never rejects. */
  readonly exited: Promise<ProcessExit>;
  terminate(): SignalResult;
  kill(): Promise<Pick<SweepReport, 'uncertain'>>;
  sweep(): Promise<Pick<SweepReport, 'uncertain'>>;
  /** Resolves when the process and its remains have ended. */
  gone(signal?: AbortSignal): Promise<void>;
  poll(): void;
  /** Stops watching; the process continues. */
  detach(): void;
  /** Calls the listener when the place stops answering and when it answers again. A local process has no such place. */
  readonly onReach?: (listener: ReachListener) => void;
}

/** Reason why a place cannot run a process now. */
export interface PlaceProblem {
  readonly kind: 'placeUnavailable' | 'imageMissing' | 'placeRefused';
  /** Failure, reason and next step. */
  readonly message: string;
}

/** The place refuses the process or does not answer. */
export class PlaceError extends Error {
  override readonly name = 'PlaceError';
  readonly kind: PlaceProblem['kind'];
  /** A retry may succeed without a change by the user. */
  readonly isRetryable: boolean;

  constructor({ kind, message }: PlaceProblem, cause?: unknown) {
    super(message, { cause });
    this.kind = kind;
    this.isRetryable = kind === 'placeUnavailable';
  }
}

/**
 * Place where the agent server of a workspace runs. `S` describes a start, `F` an adoption. An unknown state never causes a signal or
 * a second start.
 */
export interface Place<S, F> {
  readonly kind: 'local' | 'container' | 'pod';
  /** Checks whether the place can run the process; null: no problem. */
  check(request: S): Promise<PlaceProblem | null>;
  /** @param onReach called until the result is there; afterwards the process has its own listeners */
  start(request: S, onReach?: ReachListener): Promise<PlacedProcess>;
  /** Takes over a process that an earlier Hub started. */
  find(request: F): Promise<PlacedProcess>;
  isAlive(handle: Handle): Liveness;
}
