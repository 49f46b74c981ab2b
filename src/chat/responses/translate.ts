import { invalidParameter } from '../errors.ts';
import { type Plan, planOf } from '../plan.ts';
import type { Part as ChatPart, ChatRequest, Message } from '../request.ts';
import type { CustomTool, FunctionTool, Item, Part, ResponsesRequest, ToolChoice } from './request.ts';

/** Stored responses that a request refers to. */
export interface Known {
  /** The item of this id. @throws HttpError 400 for an unknown id */
  item(id: string, param: string): Item;
  /** System messages in the inputs of the earlier responses. */
  readonly system: readonly string[];
}

/** Messages of a request, each with the field that it comes from. */
interface Messages {
  readonly messages: Message[];
  readonly fields: string[];
}

function partOf(part: Part): ChatPart {
  if ('text' in part && typeof part.text === 'string') return { type: 'text', text: part.text };
  if ('image_url' in part && typeof part.image_url === 'string') {
    const { detail } = part as { readonly detail?: string | null };
    return { type: 'image_url', image_url: { url: part.image_url, detail } };
  }
  return part;
}

const contentOf = (content: string | readonly Part[]): string | ChatPart[] =>
  typeof content === 'string' ? content : content.map(partOf);

const argumentsOfCustom = (input: string): string => JSON.stringify({ input });

/** Adds a call to the message of the assistant before it, or to a new one. */
function addCall({ messages, fields }: Messages, call: { id: string; name: string; arguments: string }, field: string) {
  const { id, name, arguments: given } = call;
  const added = { id, function: { name, arguments: given } };
  const last = messages.at(-1);
  if (last?.role === 'assistant') {
    messages[messages.length - 1] = { ...last, tool_calls: [...(last.tool_calls ?? []), added] };
    return;
  }
  messages.push({ role: 'assistant', content: null, tool_calls: [added] });
  fields.push(field);
}

function add(into: Messages, item: Item, field: string, known: Known): void {
  const push = (message: Message) => {
    into.messages.push(message);
    into.fields.push(field);
  };
  switch (item.type) {
    case 'message':
      push({ role: item.role, content: contentOf(item.content) });
      return;
    case 'function_call':
      addCall(into, { id: item.call_id, name: item.name, arguments: item.arguments }, field);
      return;
    case 'custom_tool_call':
      addCall(into, { id: item.call_id, name: item.name, arguments: argumentsOfCustom(item.input) }, field);
      return;
    case 'function_call_output':
    case 'custom_tool_call_output':
      push({ role: 'tool', tool_call_id: item.call_id, content: contentOf(item.output) });
      return;
    case 'item_reference':
      add(into, known.item(item.id, `${field}.id`), field, known);
      return;
    case 'reasoning':
      return;
  }
}

function messagesOf({ input, instructions }: ResponsesRequest, known: Known): Messages {
  const into: Messages = { messages: [], fields: [] };
  for (const content of [instructions ?? '', ...known.system]) {
    if (content !== '') {
      into.messages.push({ role: 'system', content });
      into.fields.push('instructions');
    }
  }
  if (typeof input === 'string') {
    into.messages.push({ role: 'user', content: input });
    into.fields.push('input');
  } else for (const [index, item] of input.entries()) add(into, item, `input[${index}]`, known);
  return into;
}

type OfferedTool = FunctionTool | CustomTool;

/** The caller's tools that the model may call; undefined: the request names no tools. */
export function offeredTools({ tools, tool_choice }: ResponsesRequest): readonly OfferedTool[] | undefined {
  if (!tools) return undefined;
  const own = tools.filter((tool): tool is OfferedTool => tool.type !== 'other');
  if (typeof tool_choice !== 'object' || tool_choice?.type !== 'allowed_tools') return own;
  const allowed = new Set(tool_choice.tools.map(({ name }) => name));
  return own.filter(({ name }) => allowed.has(name));
}

/** Offers a custom tool, which takes text, as a function with one argument. */
const customParameters = {
  type: 'object',
  properties: { input: { type: 'string' } },
  required: ['input'],
  additionalProperties: false,
};

const chatTool = (tool: OfferedTool): NonNullable<ChatRequest['tools']>[number] => ({
  type: 'function',
  function: {
    name: tool.name,
    description: tool.description,
    parameters: tool.type === 'custom' ? customParameters : tool.parameters,
  },
});

function chatChoice(
  choice: ToolChoice | null | undefined,
  offered: readonly OfferedTool[] | undefined,
): ChatRequest['tool_choice'] {
  if (typeof choice !== 'object' || choice === null) return choice;
  if (choice.type === 'allowed_tools') return choice.mode;
  if (offered && !offered.some(({ name }) => name === choice.name)) {
    throw invalidParameter('tool_choice.name', `There is no tool ${choice.name} in tools.`);
  }
  return { function: { name: choice.name } };
}

function chatFormat(format: NonNullable<ResponsesRequest['text']>['format']): ChatRequest['response_format'] {
  if (format?.type !== 'json_schema') return format;
  const { name, schema, strict, description } = format;
  const given = { name, schema, strict: strict ?? undefined, description: description ?? undefined };
  return { type: 'json_schema', json_schema: given };
}

/** Text of the system messages among the items of a request. */
export function systemTexts({ input }: ResponsesRequest): string[] {
  if (typeof input === 'string') return [];
  return input.flatMap((item) => {
    if (item.type !== 'message' || (item.role !== 'system' && item.role !== 'developer')) return [];
    const { content } = item;
    return typeof content === 'string' ? content : content.map((part) => ('text' in part ? part.text : '')).join('\n');
  });
}

/**
 * Translates a request into the plan of a turn, the same as for an equal request to chat completions.
 *
 * @throws HttpError 400 that names the invalid field
 */
export function responsePlan(request: ResponsesRequest, known: Known): Plan {
  const { messages, fields } = messagesOf(request, known);
  const offered = offeredTools(request);
  const { reasoning, text, metadata, x_agent } = request;
  const chat: ChatRequest = {
    model: request.model,
    messages,
    stream: request.stream,
    tools: offered?.map(chatTool),
    tool_choice: chatChoice(request.tool_choice, offered),
    response_format: chatFormat(text?.format),
    temperature: request.temperature,
    top_p: request.top_p,
    presence_penalty: request.presence_penalty,
    frequency_penalty: request.frequency_penalty,
    max_completion_tokens: request.max_output_tokens,
    reasoning_effort: reasoning?.effort,
    verbosity: text?.verbosity,
    parallel_tool_calls: request.parallel_tool_calls,
    service_tier: request.service_tier,
    prompt_cache_key: request.prompt_cache_key,
    safety_identifier: request.safety_identifier,
    user: request.user,
    x_agent,
    metadata: metadata && {
      server_tools: metadata['server_tools'],
      show_tool_activity: metadata['show_tool_activity'],
    },
  };
  return planOf(chat, { header: undefined, fromUser: false }, (index) => fields[index] ?? 'input');
}
