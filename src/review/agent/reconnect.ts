import { setTimeout as sleep } from 'node:timers/promises';
import { JsonRpcError } from '../../client/index.ts';
import { ReviewAgentError } from './errors.ts';

/** Pause between two attempts, in milliseconds. */
const pauseMs = 250;

/** Repeats `attempt` until the agent server answers. @throws a refusal; the last error when `signal` aborts */
export async function untilReached<T>(attempt: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      const isFinal = error instanceof JsonRpcError || (error instanceof ReviewAgentError && !error.isRetryable);
      if (isFinal || signal.aborted) throw error;
      await sleep(pauseMs, undefined, { signal });
    }
  }
}
