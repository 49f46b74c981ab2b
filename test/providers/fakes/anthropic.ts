/** Anthropic Messages (https://platform.claude.com/docs/en/api/messages), with the refusals of the service. */
import { createHash } from 'node:crypto';
import { type Answer, type Dialect, type Received, Refusal } from '../fake.ts';
import { described, inputTokens, stepOf, thoughtOf } from '../script.ts';
import { refusalOfParameters } from './strict-schema.ts';

interface Block {
  readonly type: string;
  readonly text?: string;
  readonly thinking?: string;
  readonly signature?: string;
  readonly data?: string;
  readonly id?: string;
  readonly name?: string;
  readonly input?: unknown;
  readonly tool_use_id?: string;
  readonly content?: string | readonly Block[];
  readonly source?: { readonly type: string; readonly media_type?: string; readonly data?: string };
  readonly cache_control?: unknown;
}
interface Message {
  readonly role: string;
  readonly content: string | readonly Block[];
}

const refused = (message: string, type = 'invalid_request_error', status = 400): Refusal =>
  new Refusal(status, { type: 'error', error: { type, message }, request_id: 'req_1' });

const blocksOf = ({ content }: Message): readonly Block[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : content;
const signatureOf = (text: string): string => createHash('sha256').update(`signed ${text}`).digest('base64');
/** Messages without the marks, which move from request to request. */
const textOf = (messages: readonly Message[]): string =>
  JSON.stringify(messages, (key, value: unknown) => (key === 'cache_control' ? undefined : value));
const frame = (event: { readonly type: string }): string => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;

const limits: Readonly<Record<string, number>> = { 'claude-sonnet-5-5': 128_000, 'claude-opus-4-5': 64_000 };

export function anthropicFake(): Dialect {
  /** Thinking blocks by the id of the call that followed them. */
  const thoughts = new Map<string, readonly Block[]>();
  const cached = new Set<string>();
  return {
    name: 'anthropic',
    basePath: '/v1',
    models: ['claude-sonnet-5-5', 'claude-opus-4-5'],
    keys: [
      { header: 'x-api-key', prefix: '' },
      { header: 'authorization', prefix: 'Bearer ' },
    ],
    isQuestion: (path) => path === '/messages',
    list: () => ({
      data: ['claude-sonnet-5-5', 'claude-opus-4-5'].map((id) => ({
        type: 'model',
        id,
        display_name: id,
        created_at: '2026-01-01T00:00:00Z',
      })),
      has_more: false,
      first_id: 'claude-sonnet-5-5',
      last_id: 'claude-opus-4-5',
    }),
    wrongKey: () => refused('invalid x-api-key', 'authentication_error', 401),
    answer(received) {
      check(received, thoughts);
      return respond(received, thoughts, cached);
    },
  };
}

function check({ body, headers }: Received, thoughts: ReadonlyMap<string, readonly Block[]>): void {
  if (!headers['anthropic-version']) throw refused('anthropic-version: header is required');
  const model = String(body['model']);
  const maxTokens = limits[model];
  if (maxTokens === undefined) throw refused(`model: ${model}`, 'not_found_error', 404);
  if (typeof body['max_tokens'] !== 'number') throw refused('max_tokens: Field required');
  if (body['max_tokens'] > maxTokens)
    throw refused(`max_tokens: ${body['max_tokens']} > ${maxTokens}, which is the maximum`);
  const thinking = body['thinking'] as { type?: string; budget_tokens?: number } | undefined;
  if (model.startsWith('claude-sonnet-5')) {
    if (thinking?.type === 'enabled')
      throw refused('"thinking.type.enabled" is not supported for this model. Use adaptive.');
    if (body['temperature'] !== undefined) throw refused('`temperature` is deprecated for this model.');
  } else if (thinking?.type === 'adaptive') throw refused('adaptive thinking is not supported on this model');
  if (thinking?.type === 'enabled') {
    const budget = thinking.budget_tokens ?? 0;
    if (budget < 1_024) throw refused('thinking.enabled.budget_tokens: Input should be greater than or equal to 1024');
    if (budget >= body['max_tokens']) throw refused('`max_tokens` must be greater than `thinking.budget_tokens`');
  }
  const messages = body['messages'] as readonly Message[];
  const system = typeof body['system'] === 'string' ? [] : ((body['system'] ?? []) as readonly Block[]);
  const tools = (body['tools'] ?? []) as readonly { cache_control?: unknown; input_schema?: unknown }[];
  for (const [index, tool] of tools.entries()) {
    const refusal = refusalOfParameters(tool.input_schema);
    if (refusal !== undefined) throw refused(`tools.${index}.custom.input_schema: ${refusal}`);
  }
  const all = [...system, ...messages.flatMap(blocksOf)];
  const marks = [...all, ...tools].filter(({ cache_control: mark }) => mark !== undefined).length;
  if (marks > 4) throw refused(`A maximum of 4 blocks with cache_control may be provided. Found ${marks}.`);
  for (const block of all) {
    if (block.type === 'text' && (block.text ?? '').trim() === '')
      throw refused('messages: text content blocks must be non-empty');
    if (block.type.includes('thinking') && block.cache_control)
      throw refused('cache_control cannot be set on thinking blocks');
  }
  if (messages.at(-1)?.role === 'assistant') throw refused('This model does not support assistant message prefill.');
  for (const [index, message] of messages.entries()) checkMessage(messages, index, message, thoughts);
}

function checkMessage(
  messages: readonly Message[],
  index: number,
  message: Message,
  thoughts: ReadonlyMap<string, readonly Block[]>,
): void {
  const blocks = blocksOf(message);
  const uses = blocks.filter(({ type }) => type === 'tool_use');
  for (const { id = '' } of uses) {
    if (!/^[a-zA-Z0-9_-]+$/.test(id))
      throw refused(`messages.${index}: tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'`);
  }
  if (message.role === 'assistant' && uses.length > 0) {
    const next = messages[index + 1];
    const leading = next ? blocksOf(next).slice(0, uses.length) : [];
    const answered = new Set(leading.map(({ tool_use_id: id }) => id));
    const missing = uses.filter(({ id }) => !answered.has(id)).map(({ id }) => id);
    if (missing.length > 0) {
      throw refused(
        `messages.${index}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${missing.join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`,
      );
    }
    checkThoughts(messages, index, blocks, uses, thoughts);
  }
  const before = messages[index - 1];
  const known = new Set(before ? blocksOf(before).flatMap(({ id }) => id ?? []) : []);
  for (const { type, tool_use_id: id = '' } of blocks) {
    if (type === 'tool_result' && !known.has(id)) {
      throw refused(`messages.${index}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}.`);
    }
  }
}

/** Thinking must come back unchanged while a tool loop runs, that is, after the last message of a person. */
function checkThoughts(
  messages: readonly Message[],
  index: number,
  blocks: readonly Block[],
  uses: readonly Block[],
  thoughts: ReadonlyMap<string, readonly Block[]>,
): void {
  const isPerson = (message: Message) =>
    message.role === 'user' && blocksOf(message).every(({ type }) => type !== 'tool_result');
  if (index < messages.findLastIndex(isPerson)) return;
  const sent = thoughts.get(uses[0]?.id ?? '');
  if (!sent) return;
  const got = blocks.filter(({ type }) => type === 'thinking' || type === 'redacted_thinking');
  if (got.length === 0) {
    throw refused(
      `messages.${index}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`tool_use\`.`,
    );
  }
  for (const [place, block] of got.entries()) {
    if (block.type === 'thinking' && block.signature !== sent[place]?.signature) {
      throw refused(`messages.${index}.content.${place}: Invalid \`signature\` in \`thinking\` block`);
    }
  }
  const withoutMarks = got.map(({ cache_control: _, ...block }) => block);
  if (JSON.stringify(withoutMarks) !== JSON.stringify(sent) || blocks[0]?.type !== sent[0]?.type) {
    throw refused(
      `messages.${index}: \`thinking\` or \`redacted_thinking\` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.`,
    );
  }
}

function respond(received: Received, thoughts: Map<string, readonly Block[]>, cached: Set<string>): Answer {
  const { body, bytes } = received;
  const messages = body['messages'] as readonly Message[];
  const situation = situationOf(messages, body);
  const step = stepOf(situation);
  const hasThinking = body['thinking'] !== undefined && (body['thinking'] as Block).type !== 'disabled';
  const id = `msg_${createHash('sha256').update(JSON.stringify(body)).digest('hex').slice(0, 12)}`;
  const blocks: Block[] = [];
  let stop = 'end_turn';
  if (step.does === 'call') {
    stop = 'tool_use';
    if (hasThinking) {
      const thinking = thoughtOf(step.round);
      blocks.push({ type: 'thinking', thinking, signature: signatureOf(thinking) });
      blocks.push({ type: 'redacted_thinking', data: signatureOf(`redacted ${step.round}`) });
    }
    const own = [...blocks];
    for (const [place, key] of step.keys.entries()) {
      const callId = `toolu_${id.slice(4)}_${place}`;
      if (place === 0) thoughts.set(callId, own);
      blocks.push({ type: 'tool_use', id: callId, name: 'lookup', input: { key } });
    }
  } else if (step.does === 'refuse') {
    stop = 'refusal';
    blocks.push({ type: 'text', text: 'I cannot help with that.' });
  } else if (step.does === 'runOut') {
    stop = 'max_tokens';
    blocks.push({ type: 'text', text: 'This text is cut' });
  } else if (step.does === 'filter') stop = 'refusal';
  else blocks.push({ type: 'text', text: step.text });
  const total = inputTokens(bytes);
  const isCached = messages.some((_, index) => cached.has(textOf(messages.slice(0, index))));
  cached.add(textOf(messages));
  const read = isCached ? Math.floor(total / 2) : 0;
  const written = JSON.stringify(body).includes('cache_control') ? Math.floor((total - read) / 4) : 0;
  const usage = {
    input_tokens: total - read - written,
    cache_read_input_tokens: read,
    cache_creation_input_tokens: written,
    output_tokens: 1,
  };
  const message = {
    id,
    type: 'message',
    role: 'assistant',
    model: body['model'],
    stop_reason: null,
    stop_sequence: null,
  };
  if (body['stream'] !== true) {
    return {
      status: 200,
      json: { ...message, content: blocks, stop_reason: stop, usage: { ...usage, output_tokens: 20 } },
    };
  }
  return {
    frames: [
      frame({ type: 'message_start', ...{ message: { ...message, content: [], usage } } }),
      frame({ type: 'ping' }),
      ...blocks.flatMap(blockFrames),
      frame({
        type: 'message_delta',
        ...{ delta: { stop_reason: stop, stop_sequence: null }, usage: { output_tokens: 20 } },
      }),
      frame({ type: 'message_stop' }),
    ],
  };
}

function blockFrames(block: Block, index: number): string[] {
  const start = (content: object) => frame({ type: 'content_block_start', ...{ index, content_block: content } });
  const delta = (change: object) => frame({ type: 'content_block_delta', ...{ index, delta: change } });
  const stop = frame({ type: 'content_block_stop', ...{ index } });
  if (block.type === 'thinking') {
    const { thinking = '', signature } = block;
    return [
      start({ type: 'thinking', thinking: '', signature: '' }),
      delta({ type: 'thinking_delta', thinking: thinking.slice(0, 8) }),
      delta({ type: 'thinking_delta', thinking: thinking.slice(8) }),
      delta({ type: 'signature_delta', signature }),
      stop,
    ];
  }
  if (block.type === 'tool_use') {
    const json = JSON.stringify(block.input);
    return [
      start({ ...block, input: {} }),
      delta({ type: 'input_json_delta', partial_json: '' }),
      delta({ type: 'input_json_delta', partial_json: json.slice(0, 5) }),
      delta({ type: 'input_json_delta', partial_json: json.slice(5) }),
      stop,
    ];
  }
  if (block.type === 'text') {
    const { text = '' } = block;
    const half = Math.ceil(text.length / 2);
    return [
      start({ type: 'text', text: '' }),
      delta({ type: 'text_delta', text: text.slice(0, half) }),
      delta({ type: 'text_delta', text: text.slice(half) }),
      stop,
    ];
  }
  return [start(block), stop];
}

function situationOf(messages: readonly Message[], body: Received['body']) {
  const isPerson = (message: Message) =>
    message.role === 'user' && blocksOf(message).some(({ type }) => type === 'text' || type === 'image');
  const last = messages.findLastIndex(isPerson);
  const person = messages[last];
  const later = messages.slice(last + 1);
  const textIn = (block: Block): string =>
    typeof block.content === 'string' ? block.content : (block.content ?? []).map(({ text }) => text ?? '').join('');
  return {
    text: person
      ? blocksOf(person)
          .map(({ text }) => text ?? '')
          .join(' ')
      : '',
    rounds: later.filter(({ role }) => role === 'assistant').length,
    results: later
      .flatMap(blocksOf)
      .filter(({ type }) => type === 'tool_result')
      .map(textIn),
    pictures: (person ? blocksOf(person) : []).flatMap(({ type, source }) =>
      type === 'image' && source?.data !== undefined ? [described(source.media_type ?? '', source.data)] : [],
    ),
    wantsJson: body['output_format'] !== undefined || body['output_config'] !== undefined,
  };
}
