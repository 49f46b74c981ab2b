import * as v from 'valibot';
import { type EventObject, fromCallback } from 'xstate';
import type { OfWorkspace, SupervisionPolicy } from '../../../machines/index.ts';
import { keepConnection, type LocalConnection, probeHttp } from '../../lib/index.ts';
import { defaults, type FeedHealth } from '../../protocol/index.ts';
import { isAlive, monotonicMs } from '../../supervise/index.ts';
import type { FeedConnection } from '../contact.ts';
import type { FactsOf, WorkspaceFacts } from '../facts.ts';
import { introduce } from '../probe.ts';

/** Answer of `GET /healthz` of an agent server; the incarnation shows that it is still the process we mean. */
const Health = v.object({
  status: v.optional(v.string(), 'ok'),
  incarnation: v.nullish(v.string()),
  idleMs: v.optional(v.number(), 0),
  isRestartDue: v.optional(v.boolean(), false),
});

type ProbeResult = { readonly idleMs: number; readonly isRestartDue?: boolean } | { readonly error: string };

function healthUrl(webSocketUrl: string): string {
  const url = new URL(webSocketUrl);
  return `http://${url.host}/healthz`;
}

function judgeAnswer(body: string, marker: string | null): ProbeResult {
  const health = v.safeParse(v.pipe(v.string(), v.parseJson(), Health), body);
  return health.success ? judge(health.output, marker) : { error: 'the health answer is not understood' };
}

/** @param marker null for a server that no Hub has started: it has an incarnation of its own */
function judge(
  { status, incarnation, idleMs, isRestartDue }: v.InferInput<typeof Health>,
  marker: string | null,
): ProbeResult {
  if (marker !== null && incarnation !== marker) return { error: 'another process answers on its port' };
  if (status !== 'ok') return { error: `its health is ${status}` };
  return { idleMs: idleMs ?? 0, ...(isRestartDue === true && { isRestartDue }) };
}

/** Whether the process is known to be over. One whose state is unknown still gets its request. */
function hasEnded({ stored }: WorkspaceFacts): boolean {
  const identity = stored.server?.identity;
  return identity !== undefined && identity !== null && isAlive(identity) === 'gone';
}

/** Why a server may be silent, as its place knows it; null: unknown. */
type SilenceReason = (facts: WorkspaceFacts) => Promise<string | null>;

/** Asks once. A server that was not started by a Hub may know no health route: it is asked as a client would. */
async function ask(
  facts: WorkspaceFacts,
  connection: LocalConnection,
  signal: AbortSignal,
  reasonOf: SilenceReason,
): Promise<ProbeResult> {
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
  if (answer.ok) return judgeAnswer(answer.body ?? '', facts.marker);
  return { error: (await reasonOf(facts)) ?? answer.error ?? 'no answer' };
}

/** One question to a process that is asked again and again. */
type Ask = (connection: LocalConnection, signal: AbortSignal) => Promise<ProbeResult>;

type ProbeEvent =
  | {
      readonly type: 'PROBE.PASSED';
      readonly incarnation: number;
      readonly idleMs: number;
      readonly isRestartDue?: boolean;
    }
  | { readonly type: 'PROBE.FAILED'; readonly incarnation: number; readonly error: string };

export interface Probing {
  readonly facts: Pick<WorkspaceFacts, 'probe'>;
  /** Idleness from which on each answer is reported; 0 or absent: none is. */
  readonly idleStopMs?: number;
  readonly incarnation: number;
  readonly ask: Ask;
  readonly report: (event: ProbeEvent) => void;
  /** A connection on which the server reports its health, so that no probe is due; its silence or end calls for one at once. */
  readonly contact?: { readonly connection: FeedConnection; readonly judge: (health: FeedHealth) => ProbeResult };
}

const { probeRetryMs, probeKeepMs } = defaults.supervise;

/**
 * Probes every interval, from a random point of it, so that the probes of many workspaces spread over time; sooner after a failure, and
 * at once when the contact is silent or ends. Reports failures, the first success after one, long idleness, and a due restart. A failed round that the
 * whole Hub slept through (a closed laptop) is dropped.
 *
 * @returns a function that ends the probing
 */
export function probeRegularly({ facts, idleStopMs = 0, incarnation, ask, report, contact }: Probing): () => void {
  const { intervalMs, timeoutMs } = facts.probe;
  const ending = new AbortController();
  const connection = keepConnection();
  let timer: NodeJS.Timeout;
  let hasFailed = true;
  let isAsking = false;
  /** When the next probe is due, and when the last one ended. */
  let dueAt = monotonicMs() + intervalMs * (0.5 + Math.random() / 2);
  let askedAt = monotonicMs();

  function reportNews(verdict: ProbeResult): void {
    if ('error' in verdict) report({ type: 'PROBE.FAILED', incarnation, error: verdict.error });
    else if (hasFailed || isLong(verdict.idleMs) || verdict.isRestartDue === true) {
      report({ type: 'PROBE.PASSED', incarnation, ...verdict });
    }
    hasFailed = 'error' in verdict;
  }

  function isLong(idleMs: number): boolean {
    return idleStopMs > 0 && idleMs >= idleStopMs;
  }

  /** Milliseconds until the contact has been silent for too long. An answer to a probe ends the silence. */
  function toleratedMs(): number {
    if (!contact) return Number.POSITIVE_INFINITY;
    const { toleratedMs, silentMs } = contact.connection;
    return toleratedMs - Math.min(silentMs, monotonicMs() - askedAt);
  }

  function schedule(): void {
    const delayMs = Math.max(0, Math.min(dueAt - monotonicMs(), toleratedMs()));
    const wakeAt = monotonicMs() + delayMs;
    timer = setTimeout(() => {
      if (monotonicMs() < dueAt && toleratedMs() > 0) schedule();
      else void round(wakeAt);
    }, delayMs);
    timer.unref();
  }

  async function round(wakeAt: number): Promise<void> {
    isAsking = true;
    const verdict = await ask(connection, ending.signal);
    isAsking = false;
    if (ending.signal.aborted) return;
    const overslept = monotonicMs() - wakeAt > intervalMs + timeoutMs;
    if ('idleMs' in verdict || !overslept) reportNews(verdict);
    // The report may have ended the probing.
    if (ending.signal.aborted) return;
    // A server closes it in the meantime.
    if (intervalMs > probeKeepMs) connection.destroy();
    askedAt = monotonicMs();
    dueAt = askedAt + (hasFailed ? Math.min(intervalMs, probeRetryMs) : intervalMs);
    schedule();
  }

  /** A verdict, or the need for one, that did not come of a probe. While one is under way, its answer counts. */
  function interrupt(verdict?: ProbeResult): void {
    if (isAsking || ending.signal.aborted) return;
    if (verdict) reportNews(verdict);
    if (ending.signal.aborted) return;
    clearTimeout(timer);
    dueAt = monotonicMs() + (verdict && !hasFailed ? intervalMs : 0);
    schedule();
  }

  const leave = contact?.connection.listen({
    onHealth: (health) => interrupt(contact.judge(health)),
    onEnded: () => interrupt(),
  });
  schedule();
  return () => {
    leave?.();
    clearTimeout(timer);
    ending.abort();
    connection.destroy();
  };
}

/** The `liveness` actor of an agent server. */
export function liveness(factsOf: FactsOf, reasonOf: SilenceReason) {
  return fromCallback<EventObject, OfWorkspace & Pick<SupervisionPolicy, 'idleStopMs'>>(({ input, sendBack }) => {
    const facts = factsOf(input.workspacePath);
    return probeRegularly({
      facts,
      idleStopMs: input.idleStopMs,
      incarnation: input.incarnation,
      ask: (connection, signal) => ask(facts, connection, signal, reasonOf),
      report: sendBack,
      contact: { connection: facts.contact, judge: (health) => judge(health, facts.marker) },
    });
  });
}
