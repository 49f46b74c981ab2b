import { setTimeout as sleep } from 'node:timers/promises';
import * as v from 'valibot';
import { HubRequestError } from '../../client/index.ts';
import type { DelegatedRequest } from '../../protocol/index.ts';
import type { McpTask, McpTasks } from '../../rpc/index.ts';

/** Sends one request to the Hub with the scoped token. @throws Error with the Hub's reason */
export type Delegated = (request: DelegatedRequest, signal: AbortSignal) => Promise<unknown>;

const pollMs = 500;
/** Longest wait for an agent server that is being restarted. */
const absenceMs = 30_000;
/** Longest wait for the end of a cancelled turn. */
const cancelMs = 10_000;

/** A prompt of this program in a conversation. */
interface Prompted {
  readonly workspaceId: string;
  readonly threadId: string;
  readonly messageId: string;
}

const Result = v.looseObject({
  status: v.string(),
  createdAt: v.optional(v.string()),
  updatedAt: v.optional(v.string()),
  error: v.optional(v.string()),
});

/**
 * Led turns as tasks. The id of a task names its prompt, so the task survives this program, the Hub and the agent server.
 */
export class LedTasks implements McpTasks {
  readonly #delegated: Delegated;

  constructor(delegated: Delegated) {
    this.#delegated = delegated;
  }

  /** Task of a prompt that was sent just now. */
  begun(prompted: Prompted): McpTask {
    const now = new Date().toISOString();
    return {
      taskId: idOf(prompted),
      status: 'working',
      createdAt: now,
      lastUpdatedAt: now,
      output: { value: prompted },
    };
  }

  async get(taskId: string, signal: AbortSignal): Promise<McpTask | undefined> {
    const prompted = promptedIn(taskId);
    return prompted && this.#ask({ do: 'result', ...prompted }, signal, (answer) => taskOf(taskId, answer));
  }

  async ended(taskId: string, signal: AbortSignal): Promise<void> {
    while (!signal.aborted && (await this.get(taskId, signal))?.status === 'working') {
      await sleep(pollMs, undefined, { signal }).catch(() => undefined);
    }
  }

  async cancel(taskId: string, signal: AbortSignal): Promise<void> {
    const prompted = promptedIn(taskId);
    if (!prompted) return;
    await this.#ask({ do: 'cancel', ...prompted }, signal, () => undefined);
    await this.ended(taskId, AbortSignal.any([signal, AbortSignal.timeout(cancelMs)]));
  }

  /** Waits for an agent server that is being restarted. Resolves with undefined if the prompt no longer exists. */
  async #ask<T>(request: DelegatedRequest, signal: AbortSignal, shown: (answer: unknown) => T): Promise<T | undefined> {
    const deadline = performance.now() + absenceMs;
    for (;;) {
      try {
        return shown(await this.#delegated(request, signal));
      } catch (error) {
        const code = error instanceof HubRequestError ? error.code : undefined;
        if (code === 'notFound') return undefined;
        if (code !== 'workspaceUnavailable' || performance.now() > deadline) throw error;
        await sleep(pollMs, undefined, { signal });
      }
    }
  }
}

const idOf = ({ workspaceId, threadId, messageId }: Prompted): string => `${workspaceId}/${threadId}/${messageId}`;

function promptedIn(taskId: string): Prompted | undefined {
  const [, workspaceId, threadId, messageId] = /^([\w-]{1,100})\/([\w-]{1,200})\/([\w-]{1,100})$/.exec(taskId) ?? [];
  return workspaceId && threadId && messageId ? { workspaceId, threadId, messageId } : undefined;
}

const statuses: Readonly<Record<string, McpTask['status']>> = {
  completed: 'completed',
  failed: 'failed',
  cancelled: 'cancelled',
};

/** Reasons for which a turn does not work at present. */
const waits: Readonly<Record<string, string>> = {
  queued: 'The prompt waits for the running turn of its conversation.',
  waitingApproval: 'The agent waits for an approval.',
  waitingQuota: 'The agent waits for a quota of its provider.',
};

function taskOf(taskId: string, answer: unknown): McpTask {
  const { createdAt = new Date().toISOString(), updatedAt = createdAt, ...result } = v.parse(Result, answer);
  const status = statuses[result.status] ?? 'working';
  const statusMessage = result.error ?? waits[result.status];
  return {
    ...{ taskId, status, createdAt, lastUpdatedAt: updatedAt },
    ...(statusMessage !== undefined && { statusMessage }),
    output: { value: result, isError: status === 'failed' || status === 'cancelled' },
  };
}
