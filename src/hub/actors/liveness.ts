import * as v from 'valibot';
import { type EventObject, fromCallback } from 'xstate';
import type { OfWorkspace } from '../../../machines/index.ts';
import { isAlive, keepConnection, monotonicMs, probeHttp } from '../../supervise/index.ts';
import type { FactsOf, WorkspaceFacts } from '../facts.ts';
import { introduce } from '../probe.ts';

/** Answer of `GET /healthz` of an agent server; the incarnation shows that it is still the process we mean. */
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

/** Whether the process is known to be over. One whose state is unknown still gets its request. */
function hasEnded({ stored }: WorkspaceFacts): boolean {
  const identity = stored.server?.identity;
  return identity !== undefined && identity !== null && isAlive(identity) === 'gone';
}

/** Asks once. A server that was not started by a Hub may know no health route: it is asked as a client would. */
async function ask(
  facts: WorkspaceFacts,
  connection: ReturnType<typeof keepConnection>,
  signal: AbortSignal,
): Promise<Verdict> {
  const url = facts.endpoints['appServerWebSocket'];
  if (!url) return { error: 'it has no address' };
  // The address carries a token, and another program may have taken the port of a server that has ended.
  if (hasEnded(facts)) return { error: 'its process has ended' };
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

/** One question to a process that is asked again and again. */
type Ask = (connection: ReturnType<typeof keepConnection>, signal: AbortSignal) => Promise<Verdict>;

type ProbeEvent =
  | { readonly type: 'PROBE.PASSED'; readonly incarnation: number; readonly idleMs: number }
  | { readonly type: 'PROBE.FAILED'; readonly incarnation: number; readonly error: string };

/**
 * Probes every interval, from a random point of it, so that the probes of many workspaces spread over time. Reports
 * failures, the first success after one, and long idleness. A failed round that the whole Hub slept through (a closed
 * laptop) is dropped.
 *
 * @returns a function that ends the probing
 */
export function probeRegularly(
  facts: WorkspaceFacts,
  incarnation: number,
  ask: Ask,
  report: (event: ProbeEvent) => void,
): () => void {
  const ending = new AbortController();
  const connection = keepConnection();
  let timer: NodeJS.Timeout;
  let hasFailed = true;

  function reportNews(verdict: Verdict): void {
    if ('error' in verdict) report({ type: 'PROBE.FAILED', incarnation, error: verdict.error });
    else if (hasFailed || isLong(verdict.idleMs)) {
      report({ type: 'PROBE.PASSED', incarnation, idleMs: verdict.idleMs });
    }
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
    const verdict = await ask(connection, ending.signal);
    if (ending.signal.aborted) return;
    const overslept = monotonicMs() - due > facts.probe.intervalMs + facts.probe.timeoutMs;
    if ('idleMs' in verdict || !overslept) reportNews(verdict);
    schedule(facts.probe.intervalMs);
  }

  schedule(facts.probe.intervalMs * (0.5 + Math.random() / 2));
  return () => {
    clearTimeout(timer);
    ending.abort();
    connection.destroy();
  };
}

/** The `liveness` actor of an agent server. */
export function liveness(factsOf: FactsOf) {
  return fromCallback<EventObject, OfWorkspace>(({ input, sendBack }) => {
    const facts = factsOf(input.workspacePath);
    return probeRegularly(facts, input.incarnation, (connection, signal) => ask(facts, connection, signal), sendBack);
  });
}
