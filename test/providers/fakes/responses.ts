/** OpenAI Responses (https://platform.openai.com/docs/api-reference/responses), with the refusals of the service. */
import { createHash } from 'node:crypto';
import { type Answer, type Dialect, type Received, Refusal } from '../fake.ts';
import { described, inputTokens, stepOf, thoughtOf } from '../script.ts';
import { refusalOfParameters } from './strict-schema.ts';

interface Item {
  readonly type?: string;
  readonly role?: string;
  readonly id?: string;
  readonly phase?: string;
  readonly content?: string | readonly { readonly type: string; readonly text?: string; readonly image_url?: string }[];
  readonly call_id?: string;
  readonly name?: string;
  readonly arguments?: string;
  readonly output?: unknown;
  readonly summary?: unknown;
  readonly encrypted_content?: string;
}

const refused = (message: string, code: string | null = null, status = 400): Refusal =>
  new Refusal(status, { error: { message, type: 'invalid_request_error', param: 'input', code } });

const typeOf = ({ type, role }: Item): string => type ?? (role === undefined ? '' : 'message');
const hash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 16);

export function responsesFake(): Dialect {
  /** Reasoning items by id, as sent. */
  const reasoning = new Map<string, Item>();
  /** Id of the reasoning item before an item. */
  const required = new Map<string, string>();
  const phases = new Map<string, string>();
  const cacheKeys = new Set<string>();
  return {
    name: 'openai responses',
    basePath: '/v1',
    models: ['gpt-6-sol', 'gpt-4.1'],
    keys: [{ header: 'authorization', prefix: 'Bearer ' }],
    isQuestion: (path) => path === '/responses',
    list: () => ({
      object: 'list',
      data: ['gpt-6-sol', 'gpt-4.1'].map((id) => ({ id, object: 'model', created: 1_767_225_600, owned_by: 'openai' })),
    }),
    wrongKey: () =>
      new Refusal(401, {
        error: { message: 'Incorrect API key provided.', type: 'invalid_request_error', code: 'invalid_api_key' },
      }),
    answer(received) {
      check(received, reasoning, required, phases);
      return respond(received, { reasoning, required, phases, cacheKeys });
    },
  };
}

function check(
  { body }: Received,
  reasoning: ReadonlyMap<string, Item>,
  required: ReadonlyMap<string, string>,
  phases: ReadonlyMap<string, string>,
): void {
  const model = String(body['model']);
  const isReasoning = model.startsWith('gpt-6');
  if (!isReasoning && model !== 'gpt-4.1') {
    throw refused(`The model \`${model}\` does not exist or you do not have access to it.`, 'model_not_found', 404);
  }
  if (body['store'] !== false) throw refused('store must be false in this test: nothing is persisted');
  const { effort } = (body['reasoning'] ?? {}) as { effort?: string };
  if (effort === 'minimal')
    throw refused(`Unsupported value: 'minimal' is not supported with the '${model}' model.`, 'unsupported_value');
  if (!isReasoning && body['reasoning'])
    throw refused(
      "Unsupported parameter: 'reasoning.effort' is not supported with this model.",
      'unsupported_parameter',
    );
  if (isReasoning) {
    for (const name of ['temperature', 'top_p']) {
      if (body[name] !== undefined)
        throw refused(`Unsupported parameter: '${name}' is not supported with this model.`, 'unsupported_parameter');
    }
  }
  const limit = body['max_output_tokens'];
  if (typeof limit === 'number' && limit < 16)
    throw refused("Invalid 'max_output_tokens': integer below minimum value.", 'integer_below_min_value');
  for (const tool of (body['tools'] ?? []) as { name?: unknown; strict?: unknown; parameters?: unknown }[]) {
    const refusal = refusalOfParameters(tool.parameters);
    if (refusal !== undefined) {
      throw refused(`Invalid schema for function '${tool.name}': ${refusal}.`, 'invalid_function_parameters');
    }
    if (tool.strict !== false)
      throw refused(
        'Invalid schema for function: optional parameters need strict: false',
        'invalid_function_parameters',
      );
  }
  const items = body['input'] as readonly Item[];
  for (const [index, item] of items.entries()) checkItem(items, index, item, reasoning, required, phases);
}

function checkItem(
  items: readonly Item[],
  index: number,
  item: Item,
  reasoning: ReadonlyMap<string, Item>,
  required: ReadonlyMap<string, string>,
  phases: ReadonlyMap<string, string>,
): void {
  const type = typeOf(item);
  const { id = '', call_id: callId = '' } = item;
  if (type === 'reasoning') {
    const sent = reasoning.get(id);
    if (typeof item.encrypted_content !== 'string') {
      throw refused(
        `Item with id '${id}' not found. Items are not persisted when \`store\` is set to false.`,
        null,
        404,
      );
    }
    if (sent?.encrypted_content !== item.encrypted_content) {
      throw refused(`The encrypted content for item ${id} could not be verified.`, 'invalid_encrypted_content');
    }
    const next = items[index + 1];
    if (!next || !(typeOf(next) === 'function_call' || (typeOf(next) === 'message' && next.role === 'assistant'))) {
      throw refused(`Item '${id}' of type 'reasoning' was provided without its required following item.`);
    }
  }
  if (type === 'function_call') {
    if (callId.length > 64)
      throw refused(
        "Invalid 'input': string too long. Expected a string with maximum length 64.",
        'string_above_max_length',
      );
    const reason = required.get(callId);
    const ids = items.slice(0, index).map((before) => before.id);
    if (reason !== undefined && !ids.includes(reason)) {
      throw refused(
        `Item '${id || callId}' of type 'function_call' was provided without its required 'reasoning' item: '${reason}'.`,
      );
    }
    if (!items.slice(index).some((later) => typeOf(later) === 'function_call_output' && later.call_id === callId)) {
      throw refused(`No tool output found for function call ${callId}.`);
    }
  }
  if (type === 'function_call_output') {
    if (!items.slice(0, index).some((before) => typeOf(before) === 'function_call' && before.call_id === callId)) {
      throw refused(`No tool call found for function call output with call_id ${callId}.`);
    }
  }
  if (type === 'message' && item.role === 'assistant' && phases.has(id) && item.phase !== phases.get(id)) {
    throw refused(`Item '${id}' of type 'message' lost its phase.`);
  }
}

interface Memory {
  readonly reasoning: Map<string, Item>;
  readonly required: Map<string, string>;
  readonly phases: Map<string, string>;
  readonly cacheKeys: Set<string>;
}

function respond({ body, bytes }: Received, { reasoning, required, phases, cacheKeys }: Memory): Answer {
  const items = body['input'] as readonly Item[];
  const step = stepOf(situationOf(items, body));
  const seed = hash(JSON.stringify(items));
  const output: Item[] = [];
  const isReasoning = String(body['model']).startsWith('gpt-6');
  const wantsState = JSON.stringify(body['include'] ?? []).includes('reasoning.encrypted_content');
  let incomplete: string | undefined;
  const say = (text: string, phase: string) => {
    const id = `msg_${seed}_${phase}`;
    phases.set(id, phase);
    output.push({ type: 'message', id, role: 'assistant', phase, content: [{ type: 'output_text', text }] });
  };
  if (step.does === 'call') {
    const thought: Item = {
      type: 'reasoning',
      id: `rs_${seed}`,
      summary: [{ type: 'summary_text', text: thoughtOf(step.round) }],
      ...(wantsState && { encrypted_content: `enc-${hash(seed)}-${'x'.repeat(80)}` }),
    };
    if (isReasoning) {
      reasoning.set(`rs_${seed}`, thought);
      output.push(thought);
    }
    for (const [place, key] of step.keys.entries()) {
      const callId = `call_${seed}_${place}`;
      if (isReasoning) required.set(callId, `rs_${seed}`);
      output.push({
        type: 'function_call',
        id: `fc_${seed}_${place}`,
        call_id: callId,
        name: 'lookup',
        arguments: JSON.stringify({ key }),
      });
    }
  } else if (step.does === 'refuse') {
    output.push({
      type: 'message',
      id: `msg_${seed}`,
      role: 'assistant',
      content: [{ type: 'refusal', text: 'I cannot help with that.' }],
    });
  } else if (step.does === 'runOut') {
    say('This text is cut', 'final_answer');
    incomplete = 'max_output_tokens';
  } else if (step.does === 'filter') incomplete = 'content_filter';
  else say(step.text, 'final_answer');
  const cacheKey = String(body['prompt_cache_key'] ?? '');
  const total = inputTokens(bytes);
  const usage = {
    input_tokens: total,
    input_tokens_details: { cached_tokens: cacheKeys.has(cacheKey) ? Math.floor(total / 2) : 0 },
    output_tokens: 20,
    output_tokens_details: { reasoning_tokens: isReasoning ? 12 : 0 },
    total_tokens: total + 20,
  };
  if (cacheKey !== '') cacheKeys.add(cacheKey);
  const response = {
    id: `resp_${seed}`,
    object: 'response',
    created_at: 1_767_225_600,
    model: body['model'],
    parallel_tool_calls: true,
    tool_choice: 'auto',
    tools: [],
    error: null,
    metadata: {},
    instructions: null,
    temperature: 1,
    top_p: 1,
  };
  const done = {
    ...response,
    status: incomplete ? 'incomplete' : 'completed',
    incomplete_details: incomplete ? { reason: incomplete } : null,
    output: output.map(wholeItem),
    usage,
  };
  if (body['stream'] !== true) return { status: 200, json: done };
  let number = 0;
  const frame = (type: string, fields: object) => {
    number += 1;
    return `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: number - 1, ...fields })}\n\n`;
  };
  const begun = { ...response, status: 'in_progress', incomplete_details: null, output: [], usage: null };
  return {
    frames: [
      frame('response.created', { response: begun }),
      frame('response.in_progress', { response: begun }),
      ...output.flatMap((item, index) => itemFrames(item, index, frame)),
      frame(incomplete ? 'response.incomplete' : 'response.completed', { response: done }),
    ],
  };
}

/** An item of a finished response. */
function wholeItem(item: Item): object {
  if (item.type !== 'message' || typeof item.content === 'string') return { ...item, status: 'completed' };
  const content = (item.content ?? []).map((part) =>
    part.type === 'refusal' ? { type: 'refusal', refusal: part.text } : { ...part, annotations: [], logprobs: [] },
  );
  return { ...item, status: 'completed', content };
}

function itemFrames(item: Item, index: number, frame: (type: string, fields: object) => string): string[] {
  const place = { item_id: item.id, output_index: index };
  const added = (begun: object) => frame('response.output_item.added', { output_index: index, item: begun });
  const done = frame('response.output_item.done', { output_index: index, item: wholeItem(item) });
  if (item.type === 'reasoning') {
    const text = (item.summary as { text: string }[])[0]?.text ?? '';
    const part = { ...place, summary_index: 0 };
    return [
      // Complete only when it is done.
      added({ ...item, summary: [], ...(item.encrypted_content && { encrypted_content: 'incomplete' }) }),
      frame('response.reasoning_summary_part.added', { ...part, part: { type: 'summary_text', text: '' } }),
      frame('response.reasoning_summary_text.delta', { ...part, delta: text.slice(0, 6) }),
      frame('response.reasoning_summary_text.delta', { ...part, delta: text.slice(6) }),
      frame('response.reasoning_summary_text.done', { ...part, text }),
      frame('response.reasoning_summary_part.done', { ...part, part: { type: 'summary_text', text } }),
      done,
    ];
  }
  if (item.type === 'function_call') {
    const { arguments: args = '' } = item;
    return [
      added({ ...item, arguments: '', status: 'in_progress' }),
      frame('response.function_call_arguments.delta', { ...place, delta: args.slice(0, 4) }),
      frame('response.function_call_arguments.delta', { ...place, delta: args.slice(4) }),
      frame('response.function_call_arguments.done', { ...place, arguments: args }),
      done,
    ];
  }
  const [content] = item.content as { type: string; text: string }[];
  const text = content?.text ?? '';
  const part = { ...place, content_index: 0 };
  const half = Math.ceil(text.length / 2);
  const isRefusal = content?.type === 'refusal';
  const kind = isRefusal ? 'refusal' : 'output_text';
  const piece = (delta: string) =>
    frame(`response.${kind}.delta`, { ...part, delta, ...(isRefusal ? {} : { logprobs: [] }) });
  return [
    added({ ...item, status: 'in_progress', content: [] }),
    frame('response.content_part.added', {
      ...part,
      part: isRefusal
        ? { type: 'refusal', refusal: '' }
        : { type: 'output_text', text: '', annotations: [], logprobs: [] },
    }),
    piece(text.slice(0, half)),
    piece(text.slice(half)),
    frame(`response.${kind}.done`, {
      ...part,
      [isRefusal ? 'refusal' : 'text']: text,
      ...(isRefusal ? {} : { logprobs: [] }),
    }),
    done,
  ];
}

function situationOf(items: readonly Item[], body: Received['body']) {
  const last = items.findLastIndex((item) => typeOf(item) === 'message' && item.role === 'user');
  const content = items[last]?.content ?? '';
  const parts = typeof content === 'string' ? [{ type: 'input_text', text: content }] : content;
  const later = items.slice(last + 1);
  const calls = later.filter((item) => typeOf(item) === 'function_call');
  const outputs = later.filter((item) => typeOf(item) === 'function_call_output');
  const rounds = later.filter(
    (item, index) => typeOf(item) === 'function_call' && typeOf(later[index - 1] ?? {}) !== 'function_call',
  );
  return {
    text: parts.map((part) => ('text' in part ? (part.text ?? '') : '')).join(' '),
    rounds: calls.length === 0 ? 0 : rounds.length,
    results: outputs.map(({ output }) => textOf(output)),
    pictures: parts.flatMap((part) => {
      const [, type, data] =
        /^data:([^;]+);base64,(.*)$/s.exec('image_url' in part ? (part.image_url ?? '') : '') ?? [];
      return type !== undefined && data !== undefined ? [described(type, data)] : [];
    }),
    wantsJson: ((body['text'] as { format?: { type?: string } } | undefined)?.format?.type ?? '') === 'json_schema',
  };
}

const textOf = (output: unknown): string =>
  typeof output === 'string' ? output : (output as { text?: string }[]).map(({ text }) => text ?? '').join('');
