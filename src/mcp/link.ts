import type { FailureCode } from './failure.ts';
import type { Transport } from './library.ts';

/** Reason why a link ended by itself; undefined when this side ended it. */
export interface LinkEnd {
  readonly code: FailureCode;
  readonly message: string;
  readonly isRetryable: boolean;
}

/** Link of a conversation: a process with pipes, or requests to a URL. */
export interface Link {
  /** Transport for the library. */
  readonly transport: Transport;
  readonly pid: number | null;
  /** The end of the server's standard error. */
  readonly output: () => string;
  /** Takes leave: end of input, end of session. */
  close(): void;
  terminate(): void;
  /** At once, by force. */
  kill(): void;
  /** The conversation cannot continue: the link ends by itself, for this reason. */
  fail(end: LinkEnd): void;
  /** Resolves when nothing is left of it. Never rejects. */
  readonly gone: Promise<LinkEnd | undefined>;
}
