import type { FailureKind, ProcessFailure } from '../../machines/index.ts';
import { monotonicMs } from '../supervise/index.ts';

/** Rejection of an actor of the Hub: the machine reads `failure` and nothing else. */
export class StartError extends Error {
  override readonly name = 'StartError';
  readonly failure: ProcessFailure;

  constructor(
    kind: FailureKind,
    message: string,
    isRetryable: boolean,
    ended: Pick<ProcessFailure, 'pid' | 'lostSidecarPid'> = {},
  ) {
    super(message);
    this.failure = { kind, message, isRetryable, at: monotonicMs(), ...ended };
  }
}
