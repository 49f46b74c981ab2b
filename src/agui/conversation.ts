import type { ModelMessage } from '../agent/index.ts';
import { HttpError } from '../http/index.ts';
import type { InputPart, Turn } from '../protocol/index.ts';
import type { Content, Message, Part } from './input.ts';
import { hasSeen } from './messages.ts';

/** The answer of a frontend to a call that the last turn has left to it. */
export interface ClientResult {
  readonly callId: string;
  readonly text: string;
  readonly isError: boolean;
}

/** New messages of a client, and those before them. */
export interface Said {
  readonly input: readonly InputPart[];
  readonly results: readonly ClientResult[];
  /** The last turn began with `input`, and the client has seen nothing of that turn. */
  readonly isRepeat: boolean;
  /** All but the new user messages; results of tools included. */
  readonly history: readonly ModelMessage[];
}

type MessageOf<R extends Message['role']> = Extract<Message, { readonly role: R }>;

/**
 * AG-UI clients send the whole conversation with every run. Messages after the last one of an assistant are new. A
 * message that the last turn began with is not new again when more follows it: that turn had failed before it answered.
 *
 * @param last the newest turn of the thread, if it has one
 * @throws HttpError 400 when a new message has content that no model here accepts
 */
export function readConversation(messages: readonly Message[], last: Turn | undefined): Said {
  const from = messages.findLastIndex(({ role }) => role === 'assistant' || role === 'reasoning') + 1;
  const tail = messages.slice(from);
  const said = tail.filter((message) => message.role === 'user').flatMap(({ content }) => inputOf(content));
  const begun = startOf(last);
  const isAhead =
    last !== undefined &&
    begun.length > 0 &&
    begun.every((part, at) => isSame(part, said[at])) &&
    !hasSeen(messages, last);
  return {
    input: isAhead && said.length > begun.length ? said.slice(begun.length) : said,
    results: resultsOf(tail, openCalls(messages, last)),
    isRepeat: isAhead && said.length === begun.length,
    history: historyOf([...messages.slice(0, from), ...tail.filter(({ role }) => role === 'tool')]),
  };
}

/** System and developer messages, wherever they stand. */
export function systemTexts(messages: readonly Message[]): string[] {
  return messages.flatMap((message) =>
    (message.role === 'system' || message.role === 'developer') && message.content.trim() !== ''
      ? [message.content]
      : [],
  );
}

/** Input of a turn: the user messages before anything else in it. */
function startOf(turn: Turn | undefined): InputPart[] {
  const items = turn?.items.filter(({ type }) => type !== 'toolResult') ?? [];
  const end = items.findIndex(({ type }) => type !== 'userMessage');
  const begun = end < 0 ? items : items.slice(0, end);
  return begun.flatMap((item) => (item.type === 'userMessage' ? item.input : []));
}

const isSame = (one: InputPart, other: InputPart | undefined): boolean => JSON.stringify(one) === JSON.stringify(other);

/** Calls that were left to the client: of the last turn; without one, unanswered ones of the conversation. */
function openCalls(messages: readonly Message[], last: Turn | undefined): ReadonlySet<string> {
  if (!last) {
    const calls = messages.findLast((message) => message.role === 'assistant')?.toolCalls ?? [];
    return new Set(calls.map((call) => call.id));
  }
  const answered = new Set(last.items.flatMap((item) => (item.type === 'toolResult' ? [item.callId] : [])));
  const open = last.items.filter(
    (item) => item.type === 'toolCall' && item.source === 'client' && !answered.has(item.callId),
  );
  return new Set(open.flatMap((item) => ('callId' in item ? [item.callId] : [])));
}

function resultsOf(tail: readonly Message[], open: ReadonlySet<string>): ClientResult[] {
  const results = tail.filter((message) => message.role === 'tool' && open.has(message.toolCallId));
  return results.map((message) => {
    const { toolCallId, content, error } = message as MessageOf<'tool'>;
    const text = wordsOf(content);
    const isError = typeof error === 'string' && error !== '';
    return { callId: toolCallId, isError, text: isError ? [error, text].filter(Boolean).join('\n') : text };
  });
}

function inputOf(content: Content): InputPart[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }];
  return content.map((part): InputPart => {
    if (part.type === 'text') return { type: 'text', text: part.text };
    const url = imageOf(part);
    if (url !== undefined) return { type: 'image', url };
    throw new HttpError(
      400,
      'unsupportedContent',
      `A part of type ${part.type} cannot be taken: text and images only.`,
    );
  });
}

/** The address of a picture, as a URL; undefined for everything else. */
function imageOf(part: Exclude<Part, { type: 'text' }>): string | undefined {
  if (part.type === 'binary') {
    if (!part.mimeType.startsWith('image/')) return undefined;
    return part.data ? `data:${part.mimeType};base64,${part.data}` : asUrl(part.url ?? '');
  }
  if (part.type !== 'image') return undefined;
  const { source } = part;
  if (source.type === 'data') return asUrl(`data:${source.mimeType};base64,${source.value}`);
  return source.type === 'url' ? asUrl(source.value) : undefined;
}

function asUrl(value: string): string | undefined {
  return /^(https?:\/\/|data:image\/)/i.test(value) ? value : undefined;
}

/** Text of content of any kind. */
function wordsOf(content: Content): string {
  if (typeof content === 'string') return content;
  return content.map((part) => (part.type === 'text' ? part.text : `[${part.type}]`)).join('\n');
}

/** Text for a model about messages that this server has not seen before. Earlier pictures are only mentioned. */
function historyOf(messages: readonly Message[]): ModelMessage[] {
  const history: ModelMessage[] = [];
  const waiting = new Map<string, string>();
  const answer = (callId: string, text: string) => {
    const name = waiting.get(callId);
    // A result without its call would make a provider refuse the whole conversation.
    if (name === undefined) return;
    waiting.delete(callId);
    history.push({ role: 'tool', callId, name, content: [{ type: 'text', text }] });
  };
  // So would a call without its result.
  const settle = () => [...waiting.keys()].forEach((callId) => void answer(callId, '(no result)'));
  for (const message of messages) {
    if (message.role === 'tool') answer(message.toolCallId, wordsOf(message.content));
    if (message.role === 'user') {
      settle();
      history.push({ role: 'user', content: [{ type: 'text', text: wordsOf(message.content) }] });
    }
    if (message.role !== 'assistant') continue;
    settle();
    const toolCalls = (message.toolCalls ?? []).map((call) => ({ callId: call.id, ...call.function }));
    for (const { callId, name } of toolCalls) waiting.set(callId, name);
    history.push({ role: 'assistant', text: message.content ?? '', toolCalls });
  }
  settle();
  return history;
}
