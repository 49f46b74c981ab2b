import type { ContentPart, ModelMessage, ModelToolCall } from '../agent/index.ts';
import type { InputPart } from '../protocol/index.ts';
import { chatError, invalidParameter } from './errors.ts';
import type { Message, Part } from './request.ts';

export interface ToolAnswer {
  readonly callId: string;
  readonly text: string;
  readonly isError: boolean;
}

/** A list of messages, taken apart. */
export interface Conversation {
  /** System and developer messages, wherever they stood. */
  readonly instructions: readonly string[];
  /** Everything before the tail, oldest first. */
  readonly history: readonly ModelMessage[];
  /** The tail, which begins after the last answer of the assistant: results of tools that the caller ran… */
  readonly toolAnswers: readonly ToolAnswer[];
  /** …the same as messages… */
  readonly toolMessages: readonly ModelMessage[];
  /** …and the new message of the user. */
  readonly input: readonly InputPart[];
}

/** `https:`, or data of type image (RFC 2397). The model must not fetch addresses that are not public. */
const imageUrl = /^(?:https:\/\/|data:image\/[a-z0-9.+-]+;base64,)/i;

type Kind = 'user' | 'assistant' | 'text';
const isImage = (part: Exclude<Part, string>): part is Extract<Part, { type: 'image_url' }> =>
  part.type === 'image_url';
const isText = (part: Exclude<Part, string>): part is Extract<Part, { type: 'text' }> => part.type === 'text';

function imageOf({ image_url }: Extract<Part, { type: 'image_url' }>, param: string): ContentPart {
  const { url, detail = undefined } = typeof image_url === 'string' ? { url: image_url } : image_url;
  if (!imageUrl.test(url)) {
    throw invalidParameter(`${param}.image_url.url`, 'An image must be an https URL, or a data URL in base64.');
  }
  return { type: 'image', url, ...(typeof detail === 'string' && { detail }) };
}

/** One part; undefined for a part of an assistant that no model receives again. */
function partOf(part: Part, kind: Kind, param: string): ContentPart | undefined {
  if (typeof part === 'string') return { type: 'text', text: part };
  if (isText(part)) return { type: 'text', text: part.text };
  if (isImage(part) && kind === 'user') return imageOf(part, param);
  if (kind === 'assistant') {
    const { refusal } = part as { readonly refusal?: unknown };
    return typeof refusal === 'string' ? { type: 'text', text: refusal } : undefined;
  }
  const supported = kind === 'user' ? 'text and images by image_url' : 'text';
  const message = `Content of type ${part.type.slice(0, 50)} is not supported here; supported is ${supported}.`;
  throw chatError('unsupportedContentType', message, { param: `${param}.type` });
}

function partsOf({ content }: Message, kind: Kind, param: string): ContentPart[] {
  if (content === null || content === undefined) return [];
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return content.flatMap((part, index) => partOf(part, kind, `${param}.content[${index}]`) ?? []);
}

const textIn = (parts: readonly ContentPart[], separator = ''): string =>
  parts.map((part) => (part.type === 'text' ? part.text : '')).join(separator);

/** The deprecated pair `function_call` and role `function` has no ids: the name is one. */
const idOfFunction = (name: string) => `function:${name}`;

function argumentsText(given: string | Record<string, unknown> | null | undefined): string {
  return typeof given === 'string' ? given : given ? JSON.stringify(given) : '';
}

type AssistantMessage = Extract<Message, { role: 'assistant' }>;
function callsOf({ tool_calls, function_call }: AssistantMessage): ModelToolCall[] {
  const calls = (tool_calls ?? []).map(({ id, function: { name, arguments: given } }) => ({
    callId: id,
    name,
    arguments: argumentsText(given),
  }));
  if (function_call) {
    const { name, arguments: given } = function_call;
    calls.push({ callId: idOfFunction(name), name, arguments: argumentsText(given) });
  }
  return calls;
}

/** Converts messages for a model, one by one, and remembers the names of calls. */
class Translator {
  readonly #names = new Map<string, string>();

  translate(message: Message, param: string): ModelMessage {
    if (message.role === 'assistant') {
      const toolCalls = callsOf(message);
      for (const { callId, name } of toolCalls) this.#names.set(callId, name);
      return { role: 'assistant', text: textIn(partsOf(message, 'assistant', param)), toolCalls };
    }
    if (message.role === 'tool') {
      const callId = message.tool_call_id;
      return this.#result(callId, message.name ?? this.#names.get(callId) ?? '', partsOf(message, 'user', param));
    }
    if (message.role === 'function') {
      return this.#result(idOfFunction(message.name), message.name, partsOf(message, 'text', param));
    }
    if (message.role === 'user') return { role: 'user', content: partsOf(message, 'user', param) };
    return { role: 'system', text: textIn(partsOf(message, 'text', param), '\n') };
  }

  #result(callId: string, name: string, content: readonly ContentPart[]): ModelMessage {
    return { role: 'tool', callId, name, content };
  }
}

const asInput = (part: ContentPart): InputPart =>
  part.type === 'text' ? { type: 'text', text: part.text } : { type: 'image', url: part.url };

/**
 * Takes the messages of a request apart. A request of nothing but system messages asks its last one, as title generators do.
 *
 * @param nameOf the field of the request that has this message
 * @throws HttpError 400: content that is not supported, or a list that ends with the assistant
 */
export function conversationOf(
  messages: readonly Message[],
  nameOf = (index: number): string => `messages[${index}]`,
): Conversation {
  const translator = new Translator();
  const translated = messages.map((message, index) => translator.translate(message, nameOf(index)));
  const said = translated.filter(({ role }) => role !== 'system');
  const instructions = translated.flatMap((message) => (message.role === 'system' ? [message.text] : []));
  if (said.length === 0) {
    const question = instructions.pop() ?? '';
    return { instructions, history: [], toolAnswers: [], toolMessages: [], input: [{ type: 'text', text: question }] };
  }
  const tailStart = said.findLastIndex(({ role }) => role === 'assistant') + 1;
  const tail = said.slice(tailStart);
  if (tail.length === 0) {
    throw invalidParameter(
      `${nameOf(messages.length - 1)}.role`,
      'The last message must be of the user, or the result of a tool.',
    );
  }
  const toolMessages = tail.filter((message) => message.role === 'tool');
  const input = tail.flatMap((message) => (message.role === 'user' ? message.content.map(asInput) : []));
  return {
    instructions: instructions.filter((text) => text !== ''),
    history: said.slice(0, tailStart),
    toolMessages,
    toolAnswers: toolMessages.map(({ callId, content }) => ({ callId, text: textIn(content), isError: false })),
    input: input.length === 0 && toolMessages.length === 0 ? [{ type: 'text', text: '' }] : input,
  };
}
