import type { FinishReason } from '../../protocol/index.ts';
import type { ModelEvent, ModelProvider, ModelRequest } from '../model.ts';

/** Usage of one request to a model. */
export interface ModelUse {
  readonly model: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Counted here, because the provider reported nothing. */
  readonly isEstimated: boolean;
  /** Absent when the answer was cut off. */
  readonly finishReason: FinishReason | undefined;
  readonly durationMs: number;
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
  let usage: Extract<ModelEvent, { type: 'usage' }> | undefined;
  let finishReason: FinishReason | undefined;
  try {
    await provider.stream(
      request,
      (event) => {
        if (event.type === 'usage') usage = event;
        else if (event.type === 'finish') finishReason = event.reason;
        emit(event);
      },
      signal,
    );
  } finally {
    if (usage) {
      const { inputTokens, outputTokens, isEstimated = false } = usage;
      const durationMs = Math.round(performance.now() - began);
      onUsed({
        model: request.model ?? provider.model,
        inputTokens,
        outputTokens,
        isEstimated,
        finishReason,
        durationMs,
      });
    }
  }
}
