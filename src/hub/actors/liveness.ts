import * as v from 'valibot';
import { type EventObject, fromCallback } from 'xstate';
import type { OfWorkspace } from '../../../machines/index.ts';
import { keepConnection, monotonicMs, probeHttp } from '../../supervise/index.ts';
import type { FactsOf, WorkspaceFacts } from '../facts.ts';
import { introduce } from '../probe.ts';

/** What `GET /healthz` of an agent server tells; the incarnation shows that it is still the process we mean. */
const Health = v.object({ incarnation: v.nullish(v.string()), idleMs: v.optional(v.number(), 0) });

type Verdict = { readonly idleMs: number } | { readonly error: string };

function healthUrl(webSocketUrl: string): string {
  const url = new URL(webSocketUrl);
  return `http://${url.host}/healthz`;
}

function judge(body: string, marker: string | null): Verdict {
  const health = v.safeParse(v.pipe(v.string(), v.parseJson(), Health), body);
  if (!health.success) return { error: 'the health answer is not understood' };
  if ((health.output.incarnation ?? null) !== marker) return { error: 'another process answers on its port' };
  return { idleMs: health.output.idleMs };
}

/** Asks once. A server that was not started by a Hub may know no health route: it is asked as a client would. */
async function ask(
  facts: WorkspaceFacts,
  connection: ReturnType<typeof keepConnection>,
  signal: AbortSignal,
): Promise<Verdict> {
  const url = facts.endpoints['appServerWebSocket'];
  if (!url) return { error: 'it has no address' };
  if (facts.marker === null) {
    return introduce(url, 'oratorio-hub-health', facts.probe.timeoutMs, signal).then(
      () => ({ idleMs: 0 }),
      (error: Error) => ({ error: error.message }),
    );
  }
  const answer = await probeHttp(healthUrl(url), {
    timeoutMs: facts.probe.timeoutMs,
    connection,
    signal,
    bodyBytes: 4096,
  });
  return answer.ok ? judge(answer.body ?? '', facts.marker) : { error: answer.error ?? 'no answer' };
}

/**
 * The `liveness` actor: asks every interval, from a random point of it, so that many workspaces are not asked in one
 * tick. A round that the whole Hub slept through (a closed laptop) says nothing about the server and is dropped.
 */
export function liveness(factsOf: FactsOf) {
  return fromCallback<EventObject, OfWorkspace>(({ input, sendBack }) => {
    const facts = factsOf(input.workspacePath);
    const ending = new AbortController();
    let timer: NodeJS.Timeout;
    const connection = keepConnection();
    let hasFailed = true;

    /** Only news is told: a pass after a failure, and that the server has been idle for long. */
    function tell(verdict: Verdict): void {
      const { incarnation } = input;
      if ('error' in verdict) sendBack({ type: 'PROBE.FAILED', incarnation, error: verdict.error });
      else if (hasFailed || isLong(verdict.idleMs))
        sendBack({ type: 'PROBE.PASSED', incarnation, idleMs: verdict.idleMs });
      hasFailed = 'error' in verdict;
    }

    function isLong(idleMs: number): boolean {
      return facts.probe.idleStopMs > 0 && idleMs >= facts.probe.idleStopMs;
    }

    function schedule(delayMs: number): void {
      const due = monotonicMs() + delayMs;
      timer = setTimeout(() => void round(due), delayMs);
      timer.unref();
    }

    async function round(due: number): Promise<void> {
      const verdict = await ask(facts, connection, ending.signal);
      if (ending.signal.aborted) return;
      const overslept = monotonicMs() - due > facts.probe.intervalMs + facts.probe.timeoutMs;
      if ('idleMs' in verdict || !overslept) tell(verdict);
      schedule(facts.probe.intervalMs);
    }

    schedule(facts.probe.intervalMs * (0.5 + Math.random() / 2));
    return () => {
      clearTimeout(timer);
      ending.abort();
      connection.destroy();
    };
  });
}
