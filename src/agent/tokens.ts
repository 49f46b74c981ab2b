/** Sizes of messages, as far as no model has counted them. */
import type { ModelMessage } from './model.ts';

/** Bytes of a token until a provider has counted. */
export const bytesPerToken = 4;

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

/** Size of a conversation for a model, in bytes. */
export const bytesOfAll = (messages: readonly ModelMessage[]): number =>
  messages.reduce((bytes, message) => bytes + bytesOf(message), 0);

/** Tokens of a conversation, roughly: no provider has counted it. */
export const estimateTokens = (messages: readonly ModelMessage[]): number =>
  Math.ceil(bytesOfAll(messages) / bytesPerToken);
