import * as v from 'valibot';
import { strictJson } from '../../../lib/index.ts';
import {
  type ContentPart,
  type ModelMessage,
  type ModelRequest,
  type ModelTool,
  type ModelToolCall,
  stateFor,
  type ToolChoice,
} from '../../model.ts';
import { withPictures } from '../../pictures.ts';
import { wireToolName } from '../../tool-schema.ts';
import { ChatState, callIdShape, type Dialect, mistralCallId } from './dialect.ts';
import { isRecord } from './json.ts';

/** Form of the requested answer. */
export interface BodyOptions {
  readonly model: string;
  readonly isStreaming: boolean;
  readonly dialect: Dialect;
  /** Owner of the state that the upstream can read. */
  readonly owner: string;
}

/** Fields of `sampling` that would contradict the contract, and fields that this interface has given up. */
const notPassedOn = new Set([
  'messages',
  'model',
  'stream',
  'stream_options',
  'tools',
  'n',
  'functions',
  'function_call',
]);
/** Upstreams refuse these where no tool is offered. */
const onlyWithTools = new Set(['tool_choice', 'parallel_tool_calls']);

/**
 * The body of a chat-completions request (https://platform.openai.com/docs/api-reference/chat/create), as JSON that strict services
 * accept for every conversation.
 */
export function bodyOf(request: ModelRequest, options: BodyOptions): string {
  const { model, isStreaming, dialect } = options;
  const { tools = [], toolChoice, responseFormat } = request;
  const hasTools = tools.length > 0;
  const text = JSON.stringify({
    ...samplingOf(request, hasTools),
    model,
    ...limitsOf(request, dialect),
    messages: wireMessages(request.messages, options),
    ...(hasTools && toolChoice !== undefined && { tool_choice: wireToolChoice(toolChoice) }),
    ...(responseFormat && { response_format: responseFormat }),
    stream: isStreaming,
    ...(isStreaming && !dialect.refusesUsageOption && { stream_options: { include_usage: true } }),
  });
  return strictJson(hasTools ? `${text.slice(0, -1)},"tools":[${tools.map(wireTool).join(',')}]}` : text);
}

function limitsOf({ effort, maxOutputTokens, cacheKey }: ModelRequest, dialect: Dialect): Record<string, unknown> {
  const { effortFields = (word) => ({ reasoning_effort: word }), limitField = 'max_tokens', hasCacheKey } = dialect;
  return {
    ...(effort !== undefined && effortFields(effort)),
    ...(maxOutputTokens !== undefined && { [limitField]: maxOutputTokens }),
    ...(hasCacheKey && cacheKey !== undefined && { prompt_cache_key: cacheKey }),
  };
}

function samplingOf({ sampling = {} }: ModelRequest, hasTools: boolean): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(sampling).filter(
      ([name, value]) =>
        value !== null && value !== undefined && !notPassedOn.has(name) && (hasTools || !onlyWithTools.has(name)),
    ),
  );
}

/** JSON text of each tool: every request offers these tools, and they are most of its text. */
const wireTools = new WeakMap<ModelTool, string>();

function wireTool(tool: ModelTool): string {
  let text = wireTools.get(tool);
  if (text === undefined) {
    const { name, description, inputSchema: parameters } = tool;
    text = JSON.stringify({ type: 'function', function: { name, description, parameters } });
    wireTools.set(tool, text);
  }
  return text;
}

const wireToolChoice = (choice: ToolChoice) =>
  typeof choice === 'string' ? choice : { type: 'function', function: { name: choice.name } };

/**
 * Pictures that tools gave follow as a user's message: a tool message can hold text only. They come after the last result
 * of the answer that made the calls, because nothing may stand between those.
 */
function wireMessages(messages: readonly ModelMessage[], options: BodyOptions): unknown[] {
  const wire: unknown[] = [];
  let pictures: unknown[] = [];
  let isAfterTool = false;
  const addUser = (message: unknown) => {
    if (isAfterTool && options.dialect.isMistral) wire.push({ role: 'assistant', content: 'OK.' });
    wire.push(message);
  };
  const showPictures = () => {
    if (pictures.length > 0) addUser({ role: 'user', content: pictures });
    isAfterTool &&= pictures.length === 0;
    pictures = [];
  };
  for (const message of messages) {
    if (message.role !== 'tool') showPictures();
    if (message.role === 'user') addUser(wireMessage(message, options));
    else wire.push(wireMessage(message, options));
    isAfterTool = message.role === 'tool';
    if (message.role === 'tool') pictures.push(...picturesOf(message.name, message.callId, message.content));
  }
  showPictures();
  return wire;
}

function wireMessage(message: ModelMessage, options: BodyOptions): unknown {
  switch (message.role) {
    case 'system':
      return { role: 'system', content: message.text };
    case 'user':
      return { role: 'user', content: wireContent(message.content) };
    case 'assistant':
      return wireAnswer(message, options);
    case 'tool':
      return { role: 'tool', tool_call_id: wireId(message.callId, options), content: textOf(message.content) };
  }
}

const wireId = (callId: string, { dialect }: BodyOptions): string =>
  dialect.isMistral || !callIdShape.test(callId) ? mistralCallId(callId) : callId;

type Answer = Extract<ModelMessage, { role: 'assistant' }>;

function wireAnswer({ text, toolCalls, state }: Answer, options: BodyOptions): unknown {
  const { extraContent = {}, ...reasoning } = chatStateOf(state, options);
  if (toolCalls.length === 0) return { role: 'assistant', content: text, ...reasoning };
  const calls = toolCalls.map(({ callId, name, arguments: args }: ModelToolCall) => ({
    id: wireId(callId, options),
    type: 'function',
    function: { name: wireToolName(name), arguments: readableArguments(args) },
    ...(extraContent[callId] && { extra_content: extraContent[callId] }),
  }));
  return {
    role: 'assistant',
    content: text === '' ? null : text,
    ...(options.dialect.needsReasoningContent && { reasoning_content: '' }),
    ...reasoning,
    tool_calls: calls,
  };
}

/** Fields that go back to the service that sent them; none to one that refuses them, or to another. */
function chatStateOf(state: Answer['state'], { dialect, owner }: BodyOptions): ChatState {
  const parsed = v.safeParse(ChatState, stateFor(owner, state));
  if (!parsed.success) return {};
  if (!dialect.refusesReasoning) return parsed.output;
  const { extraContent } = parsed.output;
  return extraContent ? { extraContent } : {};
}

/** Levels of objects and lists in arguments that every parser reads. */
const maxDepth = 100;

const isDeeper = (value: unknown, levels: number): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (levels === 0 || Object.values(value).some((inner) => isDeeper(inner, levels - 1)));

/** Some upstreams parse the arguments of earlier calls, and refuse a request unless they are a strict JSON object; the model still sees them. */
function readableArguments(given: string): string {
  if (given.trim() === '') return '{}';
  const args = strictJson(given);
  try {
    const value: unknown = JSON.parse(args);
    if (isRecord(value) && !isDeeper(value, maxDepth)) return args;
  } catch {
    // The text is shown to the model below.
  }
  return strictJson(JSON.stringify({ invalid_json: args }));
}

const textOf = (content: readonly ContentPart[]): string =>
  content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');

/** Words alone go as a string, which every upstream takes. */
function wireContent(content: readonly ContentPart[]): unknown {
  const parts = withPictures(content);
  return parts.every(({ type }) => type === 'text') ? textOf(parts) : parts.map(wirePart);
}

function wirePart(part: ContentPart): unknown {
  if (part.type === 'text') return part;
  const { url, detail } = part;
  return { type: 'image_url', image_url: { url, ...(detail !== undefined && { detail }) } };
}

function picturesOf(name: string, callId: string, content: readonly ContentPart[]): unknown[] {
  const images = withPictures(content.filter(({ type }) => type === 'image'));
  if (images.length === 0) return [];
  return [{ type: 'text', text: `From the result of ${name} (${callId}):` }, ...images.map(wirePart)];
}
