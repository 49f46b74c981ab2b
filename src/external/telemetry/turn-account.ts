import { setTimeout as sleep } from 'node:timers/promises';
import type { DelegatedReport, DelegatedRequest, DelegatedUse } from '../../agent/index.ts';
import { defaults } from '../../protocol/index.ts';

export const noTokens = { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0, reasoningTokens: 0 };
export type Tokens = Readonly<typeof noTokens>;

/** Tokens of a sum and of one more request. */
export const plus = (sum: Tokens, request: DelegatedUse): Tokens => ({
  inputTokens: sum.inputTokens + request.inputTokens,
  outputTokens: sum.outputTokens + request.outputTokens,
  cachedInputTokens: sum.cachedInputTokens + (request.cachedInputTokens ?? 0),
  reasoningTokens: sum.reasoningTokens + (request.reasoningTokens ?? 0),
});

/** Below a part of a cent, two ways of adding the same prices differ. */
const leastUsd = 1e-6;

/**
 * Tokens and cost of one turn: requests to models that the agent exports, and the sum that it reports over ACP. The trace gets each
 * request, and the part of the sum beyond them, so that no token is counted twice.
 */
export class TurnAccount {
  readonly startedAt = Date.now();
  readonly #report: Pick<DelegatedReport, 'requested'>;
  #exported: Tokens & Pick<DelegatedUse, 'costUsd'> = noTokens;
  #requests = 0;
  #reported: (DelegatedUse & { readonly endedAt: number }) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  #hasRequest: (() => void) | undefined;

  constructor(report: Pick<DelegatedReport, 'requested'>) {
    this.#report = report;
  }

  /** @returns false: the account takes no more requests */
  add(request: DelegatedRequest): boolean {
    if (this.#isClosed || this.#requests >= defaults.externalAgent.telemetry.turnRequests) return false;
    this.#requests += 1;
    const { costUsd } = this.#exported;
    const isPriced = costUsd !== undefined || request.costUsd !== undefined;
    this.#exported = {
      ...plus(this.#exported, request),
      ...(isPriced && { costUsd: (costUsd ?? 0) + (request.costUsd ?? 0) }),
    };
    this.#report.requested({ ...request, endedAt: Math.max(this.startedAt, request.endedAt) });
    this.#hasRequest?.();
    return true;
  }

  /**
   * Ends the prompt. When ACP reports no tokens, waits for the export of its last request.
   *
   * @param reported by ACP
   * @param isExporting whether the agent has exported telemetry before; undefined: no receiver is open
   * @returns tokens and cost of the turn
   */
  async settle(reported: DelegatedUse, isExporting: boolean | undefined, signal?: AbortSignal): Promise<DelegatedUse> {
    const endedAt = Date.now();
    const isCounted = reported.inputTokens + reported.outputTokens > 0;
    if (!isCounted && isExporting && !signal?.aborted) await this.#nextRequest(signal);
    const use = isCounted ? { costUsd: this.#exported.costUsd, ...reported } : { ...reported, ...this.#exported };
    this.#reported = { ...use, endedAt };
    if (isExporting === undefined) this.close();
    else this.#timer = setTimeout(() => this.close(), defaults.externalAgent.telemetry.lateMs).unref();
    return use;
  }

  /** Takes no more requests, and reports the part that ACP has counted beyond them. */
  close(): void {
    if (this.#isClosed) return;
    this.discard();
    if (!this.#reported) return;
    const { inputTokens, outputTokens, cachedInputTokens, reasoningTokens, costUsd } = this.#exported;
    const rest = (all: number | undefined, known: number) => Math.max(0, (all ?? 0) - known);
    const { endedAt, ...use } = this.#reported;
    const isPriced = use.costUsd !== undefined;
    const beyond = {
      inputTokens: rest(use.inputTokens, inputTokens),
      outputTokens: rest(use.outputTokens, outputTokens),
      cachedInputTokens: rest(use.cachedInputTokens, cachedInputTokens),
      reasoningTokens: rest(use.reasoningTokens, reasoningTokens),
      ...(isPriced && { costUsd: rest(use.costUsd, costUsd ?? 0) }),
    };
    const hasCost = (beyond.costUsd ?? 0) > leastUsd;
    if (beyond.inputTokens + beyond.outputTokens === 0 && !hasCost) return;
    // Without any exported request, the whole prompt counts as one.
    const durationMs = this.#requests === 0 ? Math.max(0, endedAt - this.startedAt) : 0;
    this.#report.requested({ ...beyond, model: undefined, endedAt, durationMs });
  }

  /** Takes no more requests: the thread is gone. */
  discard(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  async #nextRequest(signal: AbortSignal | undefined): Promise<void> {
    const cut = new AbortController();
    this.#hasRequest = () => cut.abort();
    const either = signal ? AbortSignal.any([signal, cut.signal]) : cut.signal;
    await sleep(defaults.externalAgent.telemetry.waitMs, undefined, { signal: either }).catch(() => {});
    this.#hasRequest = undefined;
  }
}
