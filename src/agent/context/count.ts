import type { ModelMessage } from '../model.ts';

/** Bytes that stand for one picture: about a thousand tokens. */
const imageBytes = 4_000;
/** Role, separators and ids of one message. */
const frameBytes = 16;

const known = new WeakMap<ModelMessage, number>();

/** Size of a message for a model, in bytes. Messages never change, so each is measured once. */
export function bytesOf(message: ModelMessage): number {
  let bytes = known.get(message);
  if (bytes === undefined) {
    bytes = measured(message);
    known.set(message, bytes);
  }
  return bytes;
}

function measured(message: ModelMessage): number {
  let bytes = frameBytes;
  if ('content' in message) {
    for (const part of message.content) bytes += part.type === 'text' ? Buffer.byteLength(part.text) : imageBytes;
    return bytes;
  }
  bytes += Buffer.byteLength(message.text);
  if (message.role === 'assistant') {
    for (const call of message.toolCalls) bytes += Buffer.byteLength(call.arguments) + call.name.length;
    if (message.state) bytes += JSON.stringify(message.state.data).length;
  }
  return bytes;
}

const sum = (messages: readonly ModelMessage[]): number =>
  messages.reduce((bytes, message) => bytes + bytesOf(message), 0);

const [leastRatio, firstRatio, mostRatio] = [1 / 6, 1 / 4, 1 / 2];

/**
 * Tokens of a conversation, from the provider's own count of the last request and the bytes that came since. Tokens per byte are
 * measured with each count: code and JSON need more than prose.
 */
export class TokenCount {
  #ratio: number = firstRatio;
  #counted: { readonly tokens: number; readonly bytes: number } | undefined;

  /** Tokens for each byte. */
  get ratio(): number {
    return this.#ratio;
  }

  /** Estimates the tokens of a request. @param toolBytes size of the declarations of its tools */
  estimate(messages: readonly ModelMessage[], toolBytes: number): number {
    const bytes = sum(messages) + toolBytes;
    const { tokens, bytes: counted } = this.#counted ?? { tokens: 0, bytes: 0 };
    return Math.ceil(tokens + (bytes - counted) * this.#ratio);
  }

  /** Takes in the provider's count of a request. */
  observe(messages: readonly ModelMessage[], toolBytes: number, inputTokens: number): void {
    const bytes = sum(messages) + toolBytes;
    if (bytes === 0 || inputTokens === 0) return;
    this.#counted = { tokens: inputTokens, bytes };
    this.#ratio = Math.min(mostRatio, Math.max(leastRatio, inputTokens / bytes));
  }

  /** The conversation was rewritten: the last count says nothing about it. */
  forget(): void {
    this.#counted = undefined;
  }
}

const usualOutputTokens = 16_384;

/** Tokens of a window that stay free for the answer. */
export function reserveOf(
  window: number,
  { reserveTokens, maxOutputTokens }: { readonly reserveTokens: number; readonly maxOutputTokens: number | undefined },
): number {
  const wanted = Math.max(reserveTokens, maxOutputTokens ?? Math.min(usualOutputTokens, reserveTokens), window * 0.08);
  return Math.floor(Math.min(window / 4, wanted));
}
