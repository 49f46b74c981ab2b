import type { Handle } from '../protocol/index.ts';
import type { Liveness, ProcessExit, SignalResult, SweepReport } from '../supervise/index.ts';

/** A process of a workspace, wherever it runs: the part of `ManagedProcess` that a chart's driver uses. */
export interface PlacedProcess {
  readonly handle: Handle;
  /** Number on this machine. */
  readonly pid: number;
  /** The process itself has ended. Never rejects. */
  readonly exited: Promise<ProcessExit>;
  terminate(): SignalResult;
  kill(): Promise<Pick<SweepReport, 'uncertain'>>;
  sweep(): Promise<Pick<SweepReport, 'uncertain'>>;
  /** Resolves when nothing of it is left. */
  gone(signal?: AbortSignal): Promise<void>;
  poll(): void;
  /** Stops watching; the process lives on. */
  detach(): void;
  /** Calls the listener when the place stops answering and when it answers again. A local process has no such place. */
  readonly onReach?: (listener: (isLost: boolean) => void) => void;
}

/** Why a place takes no process now. */
export interface PlaceProblem {
  readonly kind: 'placeUnavailable' | 'imageMissing' | 'placeRefused';
  /** Failure, reason and next step. */
  readonly message: string;
}

/** The place refuses, or cannot be asked. */
export class PlaceError extends Error {
  override readonly name = 'PlaceError';
  readonly kind: PlaceProblem['kind'];
  /** Another try may succeed without a change by the user. */
  readonly isRetryable: boolean;

  constructor({ kind, message }: PlaceProblem, cause?: unknown) {
    super(message, { cause });
    this.kind = kind;
    this.isRetryable = kind === 'placeUnavailable';
  }
}

/**
 * Where the agent server of a workspace runs. `S` describes a start, `F` an adoption. `unknown` never leads to a signal or to a
 * second start.
 */
export interface Place<S, F> {
  readonly kind: 'local' | 'container';
  /** Null: it can take the process. */
  check(request: S): Promise<PlaceProblem | null>;
  start(request: S): Promise<PlacedProcess>;
  /** Takes over a process that an earlier Hub has started. */
  find(request: F): Promise<PlacedProcess>;
  isAlive(handle: Handle): Liveness;
}
