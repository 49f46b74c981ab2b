import type { DeliveryFailure } from '../../../machines/index.ts';

/** One notice for the user: that a workspace waits, never the request itself. */
export interface Notice {
  /** `<workspaceId>/<requestId>` */
  readonly id: string;
  readonly title: string;
  readonly body: string;
  /** Absolute address of the conversation, without a token. */
  readonly actionUrl: string;
  /** Path on the Hub of the request in the inbox. */
  readonly inboxPath: string;
  /** When the request declines itself, in milliseconds since the epoch. */
  readonly expiresAt: number;
}

/** Error that carries why a notice could not be delivered. */
export class DeliveryError extends Error {
  readonly failure: DeliveryFailure;

  constructor(failure: DeliveryFailure) {
    super(failure.message);
    this.name = 'DeliveryError';
    this.failure = failure;
  }
}

/** Time for one try, in milliseconds. */
export const deliveryTimeoutMs = 15_000;

/** The failure that the status of an answer means; undefined: it was delivered. Never quotes the answer. */
export function failureOf(service: string, status: number, retryAfter: string | null): DeliveryFailure | undefined {
  if (status >= 200 && status < 300) return undefined;
  const message = `${service} answered ${status}.`;
  const seconds = Number(retryAfter ?? Number.NaN);
  const retryAfterMs = Number.isFinite(seconds) && seconds >= 0 ? seconds * 1000 : undefined;
  if (status === 429 || status >= 500) return { kind: 'retryable', message, retryAfterMs };
  return { kind: 'refused', message };
}

export const unreachable = (service: string): DeliveryError =>
  new DeliveryError({ kind: 'retryable', message: `${service} could not be reached.` });
