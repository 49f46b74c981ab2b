import type { ChatRequestStore, ResponseStore, Runtime } from '../agent/index.ts';
import type { Config } from '../config/index.ts';
import type { OwnerAccess } from '../http/index.ts';
import type { Logger } from '../log/index.ts';
import { defaults } from '../protocol/index.ts';

export interface ChatOptions {
  readonly runtime: Runtime;
  /** Requests that their clients may repeat. */
  readonly requests: ChatRequestStore;
  readonly responses: ResponseStore;
  /** The `Api` section of the configuration. */
  readonly api: Config['Api'];
  /** With an empty `Api.ApiKey`: admits this user and holders of the generated key. Absent: every caller is served. */
  readonly ownerAccess?: OwnerAccess | undefined;
  /** Others than this machine can connect: the Host header is not judged then. */
  readonly isPublic: boolean;
  readonly version: string;
  /** Mode of this process in `GET /v1/health`: `api`, `gateway`, `managed`. */
  readonly mode: string;
  readonly logger: Logger;
  /** More facts for `GET /v1/health`, e.g. the sandbox. Never a secret: the route needs no key. */
  readonly health?: () => Readonly<Record<string, unknown>>;
  /** Shorter times, for tests. */
  readonly timing?: Partial<ChatTiming>;
}

export type ChatTiming = Readonly<
  Record<
    'heartbeatMs' | 'trickleAfterMs' | 'trickleMs' | 'idempotencyMs' | 'idempotencyEntries' | 'resumedGraceMs',
    number
  >
>;

export function timingOf({ timing }: Pick<ChatOptions, 'timing'>): ChatTiming {
  return { ...defaults.chat, ...timing };
}
