import type { Runtime } from '../agent/index.ts';
import type { Config } from '../config/index.ts';
import type { Logger } from '../log/index.ts';
import { defaults } from '../protocol/index.ts';

export interface ChatOptions {
  readonly runtime: Runtime;
  /** The `Api` section of the configuration. */
  readonly api: Config['Api'];
  /** Others than this machine can connect: the Host header is not judged then. */
  readonly isPublic: boolean;
  readonly version: string;
  /** How this process runs, as `GET /v1/health` tells it: `api`, `gateway`, `managed`. */
  readonly mode: string;
  readonly logger: Logger;
  /** More facts for `GET /v1/health`, e.g. the sandbox. Never a secret: nobody is asked for a key there. */
  readonly health?: () => Readonly<Record<string, unknown>>;
  /** Shorter times, for tests. */
  readonly timing?: Partial<ChatTiming>;
}

export type ChatTiming = Readonly<
  Record<'heartbeatMs' | 'trickleAfterMs' | 'trickleMs' | 'idempotencyMs' | 'idempotencyEntries', number>
>;

export function timingOf({ timing }: Pick<ChatOptions, 'timing'>): ChatTiming {
  return { ...defaults.chat, ...timing };
}

/** Limits of the chat API that belong to nobody else. */
export const limits = {
  /** Requests that wait for one session; more are answered 429. */
  waitingPerSession: 16,
  tools: 512,
  stopSequences: 4,
  /** Of JSON that is passed on as it is: schemas of tools and of answers. */
  jsonDepth: 200,
  sessionIdChars: 512,
  idempotencyKeyChars: 255,
  /** Of finished answers that are kept for retries, all together. */
  replayChars: 64 * 1_048_576,
  /** Of arguments and output that an activity event shows. */
  previewChars: 500,
  modelsMs: 60_000,
} as const;
