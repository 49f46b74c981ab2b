import type { ContentPart, ModelMessage, ModelRequest, ModelTool, ModelToolCall, ToolChoice } from '../../model.ts';

/** Form of the requested answer. */
export interface BodyOptions {
  readonly model: string;
  readonly isStreaming: boolean;
  /** Ask for the usage of a stream (`stream_options`). */
  readonly wantsUsage: boolean;
}

/** Fields of `sampling` that would contradict what the contract says, and ones that this interface has given up. */
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

/** The body of a chat-completions request (https://platform.openai.com/docs/api-reference/chat/create), as JSON. */
export function bodyOf(request: ModelRequest, { model, isStreaming, wantsUsage }: BodyOptions): string {
  const { tools = [], toolChoice, responseFormat } = request;
  const hasTools = tools.length > 0;
  const text = JSON.stringify({
    ...samplingOf(request, hasTools),
    model,
    messages: wireMessages(request.messages),
    ...(hasTools && toolChoice !== undefined && { tool_choice: wireToolChoice(toolChoice) }),
    ...(responseFormat && { response_format: responseFormat }),
    stream: isStreaming,
    ...(isStreaming && wantsUsage && { stream_options: { include_usage: true } }),
  });
  return hasTools ? `${text.slice(0, -1)},"tools":[${tools.map(wireTool).join(',')}]}` : text;
}

function samplingOf({ sampling = {} }: ModelRequest, hasTools: boolean): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(sampling).filter(
      ([name, value]) =>
        value !== null && value !== undefined && !notPassedOn.has(name) && (hasTools || !onlyWithTools.has(name)),
    ),
  );
}

/** The same tools are offered with every request, and are most of its text. */
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
function wireMessages(messages: readonly ModelMessage[]): unknown[] {
  const wire: unknown[] = [];
  let pictures: unknown[] = [];
  const showPictures = () => {
    if (pictures.length > 0) wire.push({ role: 'user', content: pictures });
    pictures = [];
  };
  for (const message of messages) {
    if (message.role !== 'tool') showPictures();
    wire.push(wireMessage(message));
    if (message.role === 'tool') pictures.push(...picturesOf(message.name, message.callId, message.content));
  }
  showPictures();
  return wire;
}

function wireMessage(message: ModelMessage): unknown {
  switch (message.role) {
    case 'system':
      return { role: 'system', content: message.text };
    case 'user':
      return { role: 'user', content: wireContent(message.content) };
    case 'assistant':
      return wireAnswer(message.text, message.toolCalls);
    case 'tool':
      return { role: 'tool', tool_call_id: message.callId, content: textOf(message.content) };
  }
}

function wireAnswer(text: string, toolCalls: readonly ModelToolCall[]): unknown {
  if (toolCalls.length === 0) return { role: 'assistant', content: text };
  const calls = toolCalls.map(({ callId, name, arguments: args }) => ({
    id: callId,
    type: 'function',
    function: { name, arguments: readableArguments(args) },
  }));
  return { role: 'assistant', content: text === '' ? null : text, tool_calls: calls };
}

/** Some upstreams parse what an earlier answer wrote and fail for good on what is not JSON; the model still sees it. */
function readableArguments(args: string): string {
  if (args.trim() === '') return '{}';
  try {
    JSON.parse(args);
    return args;
  } catch {
    return JSON.stringify({ invalid_json: args });
  }
}

const textOf = (content: readonly ContentPart[]): string =>
  content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');

/** Words alone go as a string, which every upstream takes. */
function wireContent(content: readonly ContentPart[]): unknown {
  return content.every(({ type }) => type === 'text') ? textOf(content) : content.map(wirePart);
}

function wirePart(part: ContentPart): unknown {
  if (part.type === 'text') return part;
  const { url, detail } = part;
  return { type: 'image_url', image_url: { url, ...(detail !== undefined && { detail }) } };
}

function picturesOf(name: string, callId: string, content: readonly ContentPart[]): unknown[] {
  const images = content.filter(({ type }) => type === 'image');
  if (images.length === 0) return [];
  return [{ type: 'text', text: `From the result of ${name} (${callId}):` }, ...images.map(wirePart)];
}
