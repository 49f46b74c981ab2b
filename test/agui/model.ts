/** A model whose every word the test decides. */
import type { ModelEvent, ModelProvider, ModelRequest } from '../../src/agent/index.ts';

export type Script = (
  request: ModelRequest,
  emit: (event: ModelEvent) => void,
  signal: AbortSignal,
) => Promise<void> | void;

/** Answers request after request with the next script, and the last one from then on. */
export function scripted(...scripts: Script[]): ModelProvider & { readonly requests: ModelRequest[] } {
  const requests: ModelRequest[] = [];
  return {
    name: 'scripted',
    model: 'scripted',
    requests,
    async stream(request, emit, signal) {
      const script = scripts[Math.min(requests.length, scripts.length - 1)];
      requests.push({ ...request, messages: [...request.messages] });
      await script?.(request, emit, signal);
    },
    listModels: async () => [{ id: 'scripted', ownedBy: 'test' }],
    close() {},
  };
}

export const says =
  (...texts: string[]): Script =>
  (_, emit) => {
    for (const text of texts) emit({ type: 'text', text });
    emit({ type: 'usage', inputTokens: 10, outputTokens: texts.length });
    emit({ type: 'finish', reason: 'stop' });
  };

export const calls =
  (...wanted: readonly { readonly callId: string; readonly name: string; readonly args: unknown }[]): Script =>
  (_, emit) => {
    for (const { callId, name, args } of wanted) {
      emit({ type: 'toolCall', call: { callId, name, arguments: JSON.stringify(args) } });
    }
    emit({ type: 'finish', reason: 'toolCalls' });
  };

/** Writes one call piece by piece, as models do. */
export const writes =
  (call: { readonly callId: string; readonly name: string }, ...pieces: readonly string[]): Script =>
  (_, emit) => {
    for (const argumentsDelta of pieces) emit({ type: 'toolCallDelta', index: 0, ...call, argumentsDelta });
    emit({ type: 'toolCall', call: { ...call, arguments: pieces.join('') } });
    emit({ type: 'finish', reason: 'toolCalls' });
  };

/** Begins to write a call, then nothing until it is interrupted. */
export const hangsInCall =
  (call: { readonly callId: string; readonly name: string }, piece: string): Script =>
  (request, emit, signal) => {
    emit({ type: 'toolCallDelta', index: 0, ...call, argumentsDelta: piece });
    return hangs('')(request, () => undefined, signal);
  };

/** Says something, then nothing until it is interrupted. */
export const hangs =
  (said = 'let me see'): Script =>
  (_, emit, signal) => {
    emit({ type: 'text', text: said });
    return new Promise((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      if (signal.aborted) reject(signal.reason);
    });
  };
