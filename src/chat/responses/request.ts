import * as v from 'valibot';
import { defaults } from '../../protocol/index.ts';
import { invalidParameter } from '../errors.ts';
import {
  count,
  Extension,
  fields,
  flag,
  json,
  number,
  parseBody,
  refuse,
  required,
  ToolName,
  text,
} from '../request.ts';

/* Shape of a request, with the rules of chat completions: every message completes the sentence “… must be …”. */
const typeOf = (input: unknown): string | undefined => {
  const type = (input as { readonly type?: unknown } | null)?.type;
  return typeof type === 'string' ? type : undefined;
};

const Text = fields({ type: v.picklist(['input_text', 'output_text', 'text']), text: v.string('a string') });
const Image = fields({ type: v.literal('input_image'), image_url: required, detail: text });
/** A part of another type, checked where it is used: files and audio are refused. */
const OtherPart = v.looseObject({ type: v.string('a string') }, 'an object with a type');
export type Part = v.InferOutput<typeof Text> | v.InferOutput<typeof Image> | v.InferOutput<typeof OtherPart>;
const parts: Readonly<Record<string, v.GenericSchema<unknown, Part>>> = {
  input_text: Text,
  output_text: Text,
  text: Text,
  input_image: Image,
};
const Part: v.GenericSchema<unknown, Part> = v.lazy((input) => parts[typeOf(input) ?? ''] ?? OtherPart);
const Content: v.GenericSchema<unknown, string | Part[]> = v.lazy((input) =>
  Array.isArray(input) ? v.array(Part) : v.string('a string or a list of parts'),
);

const roles = ['user', 'assistant', 'system', 'developer'] as const;
const Message = fields({ role: v.picklist(roles, `one of ${roles.join(', ')}`), content: Content });
const items = {
  message: Message,
  function_call: fields({ call_id: required, name: required, arguments: v.string('a string of JSON') }),
  function_call_output: fields({ call_id: required, output: Content }),
  custom_tool_call: fields({ call_id: required, name: required, input: v.string('a string') }),
  custom_tool_call_output: fields({ call_id: required, output: Content }),
  /** Thoughts of a model, which are never sent to a model. */
  reasoning: fields({}),
  item_reference: fields({ id: required }),
} as const;
type Items = typeof items;
export type ItemType = keyof Items;
export type Item = { [T in ItemType]: { readonly type: T } & v.InferOutput<Items[T]> }[ItemType];

/** Type of an item: messages and references may leave it out. */
function itemType(input: unknown): ItemType | undefined {
  const type = typeOf(input);
  if (type !== undefined) return Object.hasOwn(items, type) ? (type as ItemType) : undefined;
  return typeof input === 'object' && input !== null && 'id' in input && !('role' in input)
    ? 'item_reference'
    : 'message';
}

const unknownItem = v.object({ type: v.picklist(Object.keys(items), `one of ${Object.keys(items).join(', ')}`) });
const Item = v.lazy((input) => {
  const type = itemType(input);
  if (type === undefined) return unknownItem;
  return v.pipe(
    items[type] as v.GenericSchema<unknown, object>,
    v.transform((item) => ({ ...item, type })),
  );
}) as v.GenericSchema<unknown, Item>;

const tools = {
  function: fields({ name: ToolName, description: text, parameters: v.nullish(json), strict: flag }),
  custom: fields({ name: ToolName, description: text, format: v.nullish(json) }),
} as const;
export type FunctionTool = { readonly type: 'function' } & v.InferOutput<typeof tools.function>;
export type CustomTool = { readonly type: 'custom' } & v.InferOutput<typeof tools.custom>;
/** Tool of another type, which belongs to a provider and is not offered here. */
export type Tool = FunctionTool | CustomTool | { readonly type: 'other' };
const Tool = v.lazy((input) => {
  const type = typeOf(input);
  if (type !== 'function' && type !== 'custom') {
    return v.pipe(
      fields({ type: v.string('a string') }),
      v.transform(() => ({ type: 'other' })),
    );
  }
  return v.pipe(
    tools[type] as v.GenericSchema<unknown, object>,
    v.transform((tool) => ({ ...tool, type })),
  );
}) as v.GenericSchema<unknown, Tool>;

const toolChoices = ['auto', 'none', 'required'] as const;
const NamedTool = fields({ type: v.picklist(['function', 'custom'], '"function" or "custom"'), name: required });
const AllowedTools = fields({
  type: v.literal('allowed_tools'),
  mode: v.picklist(['auto', 'required'], '"auto" or "required"'),
  tools: v.array(NamedTool, 'a list of tools'),
});
export type ToolChoice =
  | (typeof toolChoices)[number]
  | v.InferOutput<typeof NamedTool>
  | v.InferOutput<typeof AllowedTools>;
const ToolChoice = v.lazy((input) => {
  if (typeof input !== 'object') {
    return v.picklist(toolChoices, `one of ${toolChoices.join(', ')}, or an object that names a tool`);
  }
  return typeOf(input) === 'allowed_tools' ? AllowedTools : NamedTool;
}) as v.GenericSchema<unknown, ToolChoice>;

/** Metadata, which is stored and repeated, within the limits of the Responses API. */
const Metadata = v.nullish(
  v.pipe(
    v.record(
      v.pipe(v.string(), v.maxLength(64, 'an object whose names have at most 64 characters')),
      v.pipe(v.string('a string'), v.maxLength(512, '512 characters at most')),
      'an object',
    ),
    v.check((metadata) => Object.keys(metadata).length <= 16, 'an object of at most 16 texts'),
  ),
);

const formats = ['text', 'json_object', 'json_schema'] as const;
const Format = v.variant(
  'type',
  [
    fields({ type: v.literal('text') }),
    fields({ type: v.literal('json_object') }),
    fields({ type: v.literal('json_schema'), name: required, schema: json, strict: flag, description: text }),
  ],
  `one of ${formats.join(', ')}`,
);

/** Request of `POST /v1/responses`. */
export const ResponsesRequest = fields({
  model: text,
  input: v.lazy((input) =>
    Array.isArray(input)
      ? v.pipe(
          v.array(Item),
          v.nonEmpty('a list with at least one item'),
          v.maxLength(defaults.chat.maxMessages, `a list of at most ${defaults.chat.maxMessages} items`),
        )
      : v.string('a string or a list of items'),
  ) as v.GenericSchema<unknown, string | Item[]>,
  instructions: text,
  previous_response_id: text,
  store: flag,
  background: flag,
  stream: flag,
  tools: v.nullish(
    v.pipe(
      v.array(Tool, 'a list of tools'),
      v.maxLength(defaults.chat.maxTools, `a list of at most ${defaults.chat.maxTools} tools`),
    ),
  ),
  tool_choice: v.nullish(ToolChoice),
  parallel_tool_calls: flag,
  temperature: number,
  top_p: number,
  presence_penalty: number,
  frequency_penalty: number,
  max_output_tokens: count,
  reasoning: v.nullish(fields({ effort: text, summary: text })),
  text: v.nullish(fields({ format: v.nullish(Format), verbosity: text })),
  truncation: text,
  metadata: Metadata,
  user: text,
  safety_identifier: text,
  prompt_cache_key: text,
  service_tier: text,
  top_logprobs: number,
  x_agent: v.nullish(Extension),
  conversation: v.nullish(v.unknown()),
  prompt: v.nullish(v.unknown()),
});
export type ResponsesRequest = v.InferOutput<typeof ResponsesRequest>;

/** Reads a parsed body as a request. @throws HttpError 400 that names the invalid field */
export function parseRequest(body: unknown): ResponsesRequest {
  const request = parseBody(ResponsesRequest, body);
  const { conversation, prompt, background, store } = request;
  if (conversation !== null && conversation !== undefined) refuse('conversation', 'use previous_response_id');
  if (prompt !== null && prompt !== undefined) refuse('prompt', 'send instructions and input');
  if ((request.top_logprobs ?? 0) > 0) refuse('top_logprobs', 'answers carry no log probabilities');
  if (background === true && store === false) {
    throw invalidParameter('background', 'A background response must be stored: omit store.');
  }
  return request;
}
