import type { FinishReason } from '../protocol/index.ts';
import type { ModelEvent, ModelProvider, ModelRequest, ModelUsage } from './model.ts';
import { costOf } from './providers/index.ts';

/** Usage of one request to a model. */
export interface ModelUse extends Omit<ModelUsage, 'isEstimated'> {
  /** Configured name of the provider. */
  readonly provider: string;
  readonly model: string;
  /** Counted here, because the provider reported nothing. */
  readonly isEstimated: boolean;
  /** Absent when the answer was cut off. */
  readonly finishReason: FinishReason | undefined;
  readonly durationMs: number;
  /** Time until the first piece of the answer; absent without one. */
  readonly firstTokenMs?: number;
}

/**
 * Streams one answer as `provider.stream` does. Reports its usage when the request has ended, also when it was interrupted or
 * failed; a request that ended before its usage was known is not reported.
 */
export async function streamCounted(
  provider: ModelProvider,
  request: ModelRequest,
  emit: (event: ModelEvent) => void,
  signal: AbortSignal,
  onUsed: (use: ModelUse) => void,
): Promise<void> {
  const began = performance.now();
  const facts = provider.facts?.(request.model);
  const elapsedMs = () => Math.round(performance.now() - began);
  let usage: ModelUsage | undefined;
  let finishReason: FinishReason | undefined;
  let firstTokenMs: number | undefined;
  try {
    await provider.stream(
      request,
      (event) => {
        firstTokenMs ??= elapsedMs();
        if (event.type === 'usage') {
          const { type: _, ...counts } = event;
          usage = counts;
        } else if (event.type === 'finish') finishReason = event.reason;
        emit(event);
      },
      signal,
    );
  } finally {
    if (usage) {
      const { isEstimated = false, costUsd = facts?.price && costOf(usage, facts.price), ...counts } = usage;
      onUsed({
        provider: facts?.provider ?? provider.name,
        model: request.model ?? provider.model,
        ...counts,
        ...(costUsd !== undefined && { costUsd }),
        isEstimated,
        finishReason,
        durationMs: elapsedMs(),
        ...(firstTokenMs !== undefined && { firstTokenMs }),
      });
    }
  }
}
