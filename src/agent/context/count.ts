import type { ModelMessage } from '../model.ts';
import { bytesOfAll, bytesPerToken } from '../tokens.ts';

const [leastRatio, mostRatio] = [1 / 6, 1 / 2];

/**
 * Tokens of a conversation, from the provider's own count of the last request and the bytes that came since. Tokens per byte are
 * measured with each count: code and JSON need more than prose.
 */
export class TokenCount {
  #ratio: number = 1 / bytesPerToken;
  #counted: { readonly tokens: number; readonly bytes: number } | undefined;

  /** Tokens for each byte. */
  get ratio(): number {
    return this.#ratio;
  }

  /** Estimates the tokens of a request. @param toolBytes size of the declarations of its tools */
  estimate(messages: readonly ModelMessage[], toolBytes: number): number {
    const bytes = bytesOfAll(messages) + toolBytes;
    const { tokens, bytes: counted } = this.#counted ?? { tokens: 0, bytes: 0 };
    return Math.ceil(tokens + (bytes - counted) * this.#ratio);
  }

  /** Takes in the provider's count of a request. */
  observe(messages: readonly ModelMessage[], toolBytes: number, inputTokens: number): void {
    const bytes = bytesOfAll(messages) + toolBytes;
    if (bytes === 0 || inputTokens === 0) return;
    this.#counted = { tokens: inputTokens, bytes };
    this.#ratio = Math.min(mostRatio, Math.max(leastRatio, inputTokens / bytes));
  }

  /** Discards the last count, because the conversation was rewritten. */
  forget(): void {
    this.#counted = undefined;
  }
}

/** Parts of a window that are the least and the most reserve. */
const leastReserve = 0.08;
const mostReserve = 0.25;

/** Tokens of a window that stay free for the answer. */
export function reserveOf(
  window: number,
  { reserveTokens, maxOutputTokens }: { readonly reserveTokens: number; readonly maxOutputTokens: number | undefined },
): number {
  const wanted = Math.max(reserveTokens, maxOutputTokens ?? 0, window * leastReserve);
  return Math.floor(Math.min(window * mostReserve, wanted));
}
