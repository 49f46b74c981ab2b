import { setImmediate } from 'node:timers/promises';
import * as v from 'valibot';
import { reviewOf } from '../agent/index.ts';
import { isDeeperThan } from '../lib/index.ts';
import { defaults } from '../protocol/index.ts';
import { chatError, invalidParameter } from './errors.ts';

/*
 * Shape of a request. Lenient where clients differ: every optional field may be null, unknown fields are
 * accepted, content may be a string, a list of parts, null or absent. Strict where a guess could be wrong.
 * Every message completes the sentence “… must be …”.
 */
export const fields = <E extends v.ObjectEntries>(entries: E) => v.object(entries, 'an object');
export const text = v.nullish(v.string('a string'));
export const number = v.nullish(v.pipe(v.number('a number'), v.finite('a number')));
export const flag = v.nullish(v.boolean('true or false'));
export const count = v.nullish(
  v.pipe(v.number('a whole number'), v.integer('a whole number'), v.minValue(1, 'at least 1')),
);
export const json = v.pipe(
  v.custom<Readonly<Record<string, unknown>>>(
    (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
    'an object',
  ),
  v.check(
    (value) => !isDeeperThan(value, defaults.chat.jsonDepth),
    `nested ${defaults.chat.jsonDepth} levels deep at most`,
  ),
);
export const required = v.pipe(v.string('a string'), v.nonEmpty('a string that is not empty'));

const TextPart = fields({ type: v.literal('text'), text: v.string('a string') });
const ImagePart = fields({
  type: v.literal('image_url'),
  image_url: v.lazy((input) => (typeof input === 'string' ? required : fields({ url: required, detail: text }))),
});
/** A part that is judged where it is used: files and audio are refused, thoughts of an assistant ignored. */
const OtherPart = v.looseObject({ type: v.string('a string') }, 'an object with a type');
const knownParts: Readonly<Record<string, v.GenericSchema<unknown, Part>>> = { text: TextPart, image_url: ImagePart };

export type Part =
  | v.InferOutput<typeof TextPart>
  | v.InferOutput<typeof ImagePart>
  | v.InferOutput<typeof OtherPart>
  | string;

const Part: v.GenericSchema<unknown, Part> = v.lazy((input) => {
  if (typeof input === 'string') return v.string();
  const type = (input as { readonly type?: unknown } | null)?.type;
  return typeof type === 'string' && Object.hasOwn(knownParts, type) ? (knownParts[type] ?? OtherPart) : OtherPart;
});
const Content: v.GenericSchema<unknown, string | Part[] | null | undefined> = v.nullish(
  v.lazy((input) => (Array.isArray(input) ? v.array(Part) : v.string('a string or a list of parts'))),
);

/** Arguments should be JSON text; some clients send the object itself. */
const Arguments = v.nullish(v.union([v.string(), v.record(v.string(), v.unknown())], 'a string of JSON'));
const Call = fields({
  id: required,
  function: v.object({ name: required, arguments: Arguments }, 'an object: only calls of functions are supported'),
});

const roles = ['system', 'developer', 'user', 'assistant', 'tool', 'function'] as const;
const Message = v.variant(
  'role',
  [
    fields({ role: v.picklist(['system', 'developer', 'user']), content: Content }),
    fields({
      role: v.literal('assistant'),
      content: Content,
      tool_calls: v.nullish(v.array(Call, 'a list of calls')),
      function_call: v.nullish(fields({ name: required, arguments: Arguments })),
    }),
    fields({ role: v.literal('tool'), content: Content, tool_call_id: required, name: text }),
    fields({ role: v.literal('function'), content: Content, name: required }),
  ],
  `one of ${roles.join(', ')}`,
);
export type Message = v.InferOutput<typeof Message>;

/** Name of a tool, which every model service accepts. */
export const ToolName = v.pipe(required, v.regex(/^[a-zA-Z0-9_-]{1,128}$/, '1 to 128 letters, digits, _ or -'));

const functionOnly = '"function": no other kind of tool is supported';
const Tool = fields({
  type: v.literal('function', functionOnly),
  function: fields({
    name: ToolName,
    description: text,
    parameters: v.nullish(json),
  }),
});
const toolChoices = ['auto', 'none', 'required'] as const;
const ToolChoice = v.lazy((input) =>
  typeof input === 'object'
    ? fields({ type: v.literal('function', '"function"'), function: fields({ name: required }) })
    : v.picklist(toolChoices, `one of ${toolChoices.join(', ')}, or an object that names a function`),
) as v.GenericSchema<unknown, (typeof toolChoices)[number] | { readonly function: { readonly name: string } }>;

const formats = ['text', 'json_object', 'json_schema'] as const;
const ResponseFormat = v.variant(
  'type',
  [
    fields({ type: v.literal('text') }),
    fields({ type: v.literal('json_object') }),
    fields({
      type: v.literal('json_schema'),
      json_schema: v.pipe(
        json,
        v.check(({ name }) => typeof name === 'string', 'an object with a name'),
      ),
    }),
  ],
  `one of ${formats.join(', ')}`,
);

/** Parameters that go to the model's provider unchanged. */
const sampling = {
  temperature: number,
  top_p: number,
  top_k: number,
  min_p: number,
  presence_penalty: number,
  frequency_penalty: number,
  repetition_penalty: number,
  max_tokens: count,
  max_completion_tokens: count,
  seed: number,
  stop: v.nullish(
    v.union(
      [
        v.string(),
        v.pipe(
          v.array(v.string()),
          v.maxLength(defaults.chat.maxStopSequences, `at most ${defaults.chat.maxStopSequences} strings`),
        ),
      ],
      `a string, or a list of at most ${defaults.chat.maxStopSequences} strings`,
    ),
  ),
  logit_bias: v.nullish(v.record(v.string(), v.pipe(v.number('numbers'), v.finite('numbers')), 'an object')),
  reasoning_effort: text,
  verbosity: text,
  parallel_tool_calls: flag,
  service_tier: text,
  prompt_cache_key: text,
  safety_identifier: text,
} as const;
export const samplingNames = Object.keys(sampling) as (keyof typeof sampling)[];

/** Extensions of this API in the body; `metadata` carries the same for clients that cannot add fields. */
export const Extension = fields({
  /** Offers the tools of the server beside those in `tools`. */
  serverTools: flag,
  /** Overrides `Api.ShowToolActivity`. */
  showToolActivity: flag,
});

export const ChatRequest = fields({
  ...sampling,
  model: text,
  messages: v.pipe(
    v.array(Message, 'a list of messages'),
    v.nonEmpty('a list with at least one message'),
    v.maxLength(defaults.chat.maxMessages, `a list of at most ${defaults.chat.maxMessages} messages`),
  ),
  stream: flag,
  stream_options: v.nullish(fields({ include_usage: flag })),
  tools: v.nullish(
    v.pipe(
      v.array(Tool, 'a list of tools'),
      v.maxLength(defaults.chat.maxTools, `a list of at most ${defaults.chat.maxTools} tools`),
    ),
  ),
  tool_choice: v.nullish(ToolChoice),
  response_format: v.nullish(ResponseFormat),
  user: text,
  metadata: v.nullish(v.record(v.string(), v.unknown(), 'an object')),
  x_agent: v.nullish(Extension),
  n: v.nullish(v.pipe(v.number('1'), v.integer('1'), v.minValue(1, '1'))),
  logprobs: flag,
  audio: v.nullish(v.unknown()),
  modalities: v.nullish(v.array(v.string('a string'), 'a list of strings')),
  functions: v.nullish(v.array(v.unknown(), 'a list')),
});
export type ChatRequest = v.InferOutput<typeof ChatRequest>;

/** `['messages', 0, 'content']` → `messages[0].content`. */
function paramOf(path: readonly v.IssuePathItem[] | undefined): string | undefined {
  if (!path) return undefined;
  return path
    .map(({ key }) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`))
    .join('')
    .replace(/^\./, '');
}

/** Unsupported features are refused rather than ignored: the answer would differ from the request. */
export function refuse(param: string, why: string): never {
  throw chatError('unsupportedParameter', `${param} is not supported: ${why}.`, { param });
}

function refuseUnsupported(request: ChatRequest): void {
  if ((request.n ?? 1) > 1) refuse('n', 'one answer per request');
  if (request.logprobs === true) refuse('logprobs', 'answers carry no log probabilities');
  if (request.audio !== null && request.audio !== undefined) refuse('audio', 'answers are text');
  if (request.modalities?.some((each) => each !== 'text')) refuse('modalities', 'answers are text');
  if (request.functions && request.functions.length > 0) refuse('functions', 'use tools');
}

interface NamedTool {
  readonly name: string;
  readonly parameters?: Readonly<Record<string, unknown>> | null | undefined;
}

/** Serves other requests after so long. */
const reviewMs = 10;

/**
 * Checks that names differ and that a model can be offered the arguments of each tool.
 *
 * @param tools undefined for a tool that is not offered
 * @param fieldOf field of the request that has this tool
 * @throws HttpError 400 that names the field
 */
export async function checkTools(tools: readonly (NamedTool | undefined)[], fieldOf: (index: number) => string) {
  const names = new Set<string>();
  let since = performance.now();
  for (const [index, tool] of tools.entries()) {
    if (!tool) continue;
    const { name, parameters } = tool;
    if (names.has(name)) throw invalidParameter(`${fieldOf(index)}.name`, `Two tools are named ${name}: rename one.`);
    names.add(name);
    const review = parameters && reviewOf(parameters);
    if (review && !review.schema) {
      const param = `${fieldOf(index)}.parameters`;
      throw invalidParameter(param, `${review.problems[0].replace('inputSchema', param)}.`);
    }
    if (performance.now() - since < reviewMs) continue;
    await setImmediate();
    since = performance.now();
  }
}

/** Reads a parsed body as a request to chat completions. @throws HttpError 400 that names the invalid field */
export function parseRequest(body: unknown): ChatRequest {
  const request = parseBody(ChatRequest, body);
  refuseUnsupported(request);
  return request;
}

/** Reads a parsed body as a request of this shape. @throws HttpError 400 that names the invalid field */
export function parseBody<T>(schema: v.GenericSchema<unknown, T>, body: unknown): T {
  const parsed = v.safeParse(schema, body, { abortEarly: true });
  if (parsed.success) return parsed.output;
  const [issue] = parsed.issues;
  const param = paramOf(issue.path);
  if (param === undefined) throw chatError('invalidParameter', 'The body must be a JSON object.');
  if (issue.received === 'undefined') {
    throw chatError('missingParameter', `${param} is missing.`, { param });
  }
  throw invalidParameter(param, `${param} must be ${issue.message}.`);
}
