import * as v from 'valibot';
import { JsonRpcError } from '../../client/index.ts';
import { rpcErrors, runningStatuses } from '../../protocol/index.ts';
import type { AgentConnection } from './connection.ts';
import { asFailure, ReviewAgentError } from './errors.ts';
import type { AgentLimits } from './limits.ts';

const Read = v.looseObject({
  thread: v.looseObject({ turns: v.optional(v.array(v.looseObject({ id: v.string(), status: v.string() })), []) }),
});
const Ended = v.looseObject({ threadId: v.string(), turn: v.looseObject({ id: v.string() }) });
/** States of a turn that has not ended. */
export const runningStates: ReadonlySet<string> = new Set(runningStatuses);

/** Error codes that mean that the wanted state is reached already. */
const fine = new Set<number>([
  rpcErrors.threadNotFound.code,
  rpcErrors.turnNotFound.code,
  rpcErrors.turnNotRunning.code,
]);

/**
 * Ends the running turn of a thread, whichever client began it, waits for its end, and archives the thread. A missing thread
 * is not an error.
 *
 * @throws ReviewAgentError agentConnectionLost; turnFailed when it does not end in time
 */
export async function endThread(server: AgentConnection, threadId: string, limits: AgentLimits): Promise<void> {
  const lost = server.lost();
  const heard = new Set<string>();
  const turn = Promise.withResolvers<void>();
  let wanted: string | undefined;
  const off = server.listen(({ method, params }) => {
    if (!/^turn\/(completed|failed|cancelled)$/.test(method)) return;
    const ended = v.safeParse(Ended, params);
    if (!ended.success || ended.output.threadId !== threadId) return;
    heard.add(ended.output.turn.id);
    if (ended.output.turn.id === wanted) turn.resolve();
  });
  try {
    await server.request('thread/subscribe', { threadId });
    const answer = await server.request('thread/read', { threadId, includeTurns: true, turnLimit: 1 });
    const last = v.parse(Read, answer).thread.turns.at(-1);
    if (last && runningStates.has(last.status)) {
      wanted = last.id;
      await server.request('turn/interrupt', { threadId, turnId: last.id }).catch(unlessFine);
      if (!heard.has(last.id)) await within(limits.endTurnMs, Promise.race([turn.promise, lost.promise]));
    }
    await server.request('thread/archive', { threadId });
    await server.request('thread/unsubscribe', { threadId });
  } catch (error) {
    unlessFine(error);
  } finally {
    off();
    lost.stop();
  }
}

/** @throws ReviewAgentError */
function unlessFine(error: unknown): void {
  if (error instanceof JsonRpcError && fine.has(error.code)) return;
  throw asFailure(error);
}

async function within(ms: number, work: Promise<void>): Promise<void> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => late.reject(new ReviewAgentError('turnFailed', `A turn did not end within ${ms} ms.`)),
    ms,
  );
  await Promise.race([work, late.promise]).finally(() => clearTimeout(timer));
}
