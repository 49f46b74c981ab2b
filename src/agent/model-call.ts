import type { FinishReason } from '../protocol/index.ts';
import type { ModelEvent, ModelProvider, ModelRequest, ModelUsage } from './model.ts';
import { costOf } from './providers/index.ts';

/** Facts of one request to a model, failed or not. */
export interface ModelCall {
  /** Configured name of the provider. */
  readonly provider: string;
  readonly model: string;
  readonly durationMs: number;
  /** Time until the first piece of the answer; absent without one. */
  readonly firstTokenMs?: number;
  /** Id that the service gave the request. */
  readonly requestId?: string;
}

/** Usage of one request to a model. */
export interface ModelUse extends Omit<ModelUsage, 'isEstimated'>, ModelCall {
  /** Counted here, because the provider reported nothing. */
  readonly isEstimated: boolean;
  /** Absent when the answer was cut off. */
  readonly finishReason: FinishReason | undefined;
}

export interface CallListeners {
  /** The request has ended, also one that was interrupted or failed after its usage was known. */
  readonly onUsed: (use: ModelUse) => void;
  /** The request has failed before its usage was known. Not called for one that was interrupted. */
  readonly onFailed?: (call: ModelCall, error: unknown) => void;
}

/** Streams one answer as `provider.stream` does, and reports the outcome of the request. */
export async function streamCounted(
  provider: ModelProvider,
  request: ModelRequest,
  emit: (event: Exclude<ModelEvent, { type: 'received' }>) => void,
  signal: AbortSignal,
  { onUsed, onFailed }: CallListeners,
): Promise<void> {
  const began = performance.now();
  const facts = provider.facts?.(request.model);
  const elapsedMs = () => Math.round(performance.now() - began);
  let usage: ModelUsage | undefined;
  let finishReason: FinishReason | undefined;
  let firstTokenMs: number | undefined;
  let requestId: string | undefined;
  const call = (): ModelCall => ({
    provider: facts?.provider ?? provider.name,
    model: request.model ?? provider.model,
    durationMs: elapsedMs(),
    ...(firstTokenMs !== undefined && { firstTokenMs }),
    ...(requestId !== undefined && { requestId }),
  });
  try {
    await provider.stream(
      request,
      (event) => {
        if (event.type === 'received') {
          requestId = event.requestId;
          return;
        }
        firstTokenMs ??= elapsedMs();
        if (event.type === 'usage') {
          const { type: _, ...counts } = event;
          usage = counts;
        } else if (event.type === 'finish') finishReason = event.reason;
        emit(event);
      },
      signal,
    );
  } catch (error) {
    if (!signal.aborted && !usage) onFailed?.(call(), error);
    throw error;
  } finally {
    if (usage) {
      const { isEstimated = false, costUsd = facts?.price && costOf(usage, facts.price), ...counts } = usage;
      onUsed({ ...call(), ...counts, ...(costUsd !== undefined && { costUsd }), isEstimated, finishReason });
    }
  }
}
