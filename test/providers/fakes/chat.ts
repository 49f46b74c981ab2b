/** Chat completions of the services that speak it with deviations of their own, which they enforce. */
import { createHash } from 'node:crypto';
import { type Answer, type Dialect, type Received, Refusal } from '../fake.ts';
import { described, inputTokens, stepOf, thoughtOf } from '../script.ts';
import { refusalOfParameters } from './strict-schema.ts';

interface Call {
  readonly id: string;
  readonly function: { readonly name: string; readonly arguments: string };
  readonly extra_content?: { readonly google?: { readonly thought_signature?: string } };
}
interface Tool {
  readonly name: string;
  readonly parameters?: unknown;
}
interface Message {
  readonly role: string;
  readonly content?:
    | string
    | null
    | readonly { readonly type: string; readonly text?: string; readonly image_url?: { readonly url: string } }[];
  readonly tool_calls?: readonly Call[];
  readonly tool_call_id?: string;
  readonly reasoning_content?: string;
  readonly reasoning?: string;
  readonly reasoning_details?: readonly unknown[];
}

/** Deviations of one service. */
export interface ChatRules {
  readonly name: string;
  readonly models: readonly string[];
  /** Field in which thoughts are sent. */
  readonly thoughts?: 'reasoning_content' | 'reasoning' | 'reasoning_details';
  /** `always`: every message with calls must carry it. `same`: the sent value must come back. `never`: it is refused. */
  readonly thoughtsBack?: 'always' | 'same' | 'never';
  readonly signsCalls?: true;
  readonly callIds?: 'nine' | 'none';
  readonly isLoose?: true;
  readonly refusesUserAfterTool?: true;
  readonly refusesToolsOf?: RegExp;
  readonly limitField?: 'max_tokens' | 'max_completion_tokens';
  readonly keyHeader?: 'api-key';
  readonly sendsComments?: true;
  readonly cost?: number;
  /** Field with the window in the list of models. */
  readonly windowField?: 'max_model_len' | 'context_length';
  readonly errorsAreList?: true;
}

const hash = (text: string): string => createHash('sha256').update(text).digest('hex');

export function chatFake(rules: ChatRules): Dialect {
  /** Opaque fields by call id, as sent. */
  const sent = new Map<string, unknown>();
  const refused = (message: string, status = 400, code: string | null = null): Refusal => {
    const error = { error: { message, type: 'invalid_request_error', code } };
    return new Refusal(status, rules.errorsAreList ? [error] : error);
  };
  return {
    name: rules.name,
    basePath: '/v1',
    models: rules.models,
    keys: [rules.keyHeader ? { header: rules.keyHeader, prefix: '' } : { header: 'authorization', prefix: 'Bearer ' }],
    isQuestion: (path) => path === '/chat/completions',
    list: () => ({
      object: 'list',
      data: rules.models.map((id) => ({
        id,
        object: 'model',
        owned_by: rules.name,
        ...(rules.windowField && { [rules.windowField]: 32_768 }),
      })),
    }),
    wrongKey: () => refused('Incorrect API key provided', 401, 'invalid_api_key'),
    answer(received) {
      check(received, rules, sent, refused);
      return respond(received, rules, sent);
    },
  };
}

type Refuse = (message: string, status?: number, code?: string | null) => Refusal;

function check({ body }: Received, rules: ChatRules, sent: ReadonlyMap<string, unknown>, refused: Refuse): void {
  const model = String(body['model']);
  if (!rules.models.includes(model)) throw refused(`The model \`${model}\` does not exist`, 404, 'model_not_found');
  if (rules.refusesToolsOf?.test(model) && body['tools'] !== undefined) {
    throw refused('Function tools with reasoning_effort are not supported for this model in /v1/chat/completions.');
  }
  for (const { function: tool } of (body['tools'] ?? []) as readonly { function: Tool }[]) {
    const refusal = refusalOfParameters(tool.parameters);
    if (refusal !== undefined) {
      throw refused(`Invalid schema for function '${tool.name}': ${refusal}.`, 400, 'invalid_function_parameters');
    }
  }
  const { limitField } = rules;
  const other = limitField === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens';
  if (limitField && body[other] !== undefined)
    throw refused(`Unsupported parameter: '${other}'. Use '${limitField}' instead.`);
  const messages = body['messages'] as readonly Message[];
  for (const [index, message] of messages.entries()) {
    if (message.role === 'developer') throw refused('unknown variant `developer`');
    checkPairs(messages, index, message, rules, refused);
    checkThoughts(message, index, rules, sent, refused);
  }
}

function checkPairs(
  messages: readonly Message[],
  index: number,
  message: Message,
  rules: ChatRules,
  refused: Refuse,
): void {
  const before = messages[index - 1];
  if (message.role === 'user' && before?.role === 'tool' && rules.refusesUserAfterTool) {
    throw refused("Unexpected role 'user' after role 'tool'");
  }
  for (const { id, function: fn } of message.tool_calls ?? []) {
    if (rules.callIds === 'nine' && !/^[a-zA-Z0-9]{9}$/.test(id)) {
      throw refused(`Tool call id was ${id} but must be a-z, A-Z, 0-9, with a length of 9.`);
    }
    JSON.parse(fn.arguments);
    const next = messages.slice(index + 1);
    const results = next.slice(
      0,
      Math.max(
        0,
        next.findIndex(({ role }) => role !== 'tool') +
          (next.every(({ role }) => role === 'tool') ? next.length + 1 : 0),
      ),
    );
    if (!results.some((result) => result.tool_call_id === id)) {
      throw refused(
        `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. ${id}`,
      );
    }
  }
}

function checkThoughts(
  message: Message,
  index: number,
  rules: ChatRules,
  sent: ReadonlyMap<string, unknown>,
  refused: Refuse,
): void {
  const [call] = message.tool_calls ?? [];
  const { thoughts = 'reasoning_content' } = rules;
  const back = message[thoughts];
  const any = message.reasoning_content ?? message.reasoning ?? message.reasoning_details;
  if (rules.thoughtsBack === 'never' && any !== undefined)
    throw refused(`property 'messages.${index}.${thoughts}' is unsupported`);
  if (!call) return;
  if (rules.thoughtsBack === 'always' && message.reasoning_content === undefined) {
    throw refused('The `reasoning_content` in the thinking mode must be passed back to the API.');
  }
  const known = sent.get(call.id);
  if (known === undefined) return;
  if (rules.thoughtsBack === 'always' || rules.thoughtsBack === 'same') {
    if (JSON.stringify(back) !== JSON.stringify(known)) throw refused(`messages.${index}.${thoughts} was changed`);
  }
  if (rules.signsCalls && call.extra_content?.google?.thought_signature !== known) {
    throw refused(`Function call is missing a thought_signature in functionCall parts. position ${index}`);
  }
}

function respond({ body, bytes }: Received, rules: ChatRules, sent: Map<string, unknown>): Answer {
  const messages = body['messages'] as readonly Message[];
  const step = stepOf(situationOf(messages, body));
  const seed = hash(JSON.stringify(messages));
  const total = inputTokens(bytes);
  const usage = {
    prompt_tokens: total,
    completion_tokens: 20,
    total_tokens: total + 20,
    prompt_tokens_details: { cached_tokens: messages.length > 1 ? Math.floor(total / 2) : 0 },
    completion_tokens_details: { reasoning_tokens: rules.thoughts ? 12 : 0 },
    ...(rules.cost !== undefined && { cost: rules.cost }),
  };
  const frames: string[] = rules.sendsComments ? [': PROCESSING\n\n'] : [];
  const chunk = (delta: object, finish: string | null = null, more: object = {}) =>
    `data: ${JSON.stringify({
      id: `chatcmpl-${seed.slice(0, 8)}`,
      object: 'chat.completion.chunk',
      created: 1_767_225_600,
      model: body['model'],
      choices: [{ index: 0, delta, finish_reason: finish }],
      ...more,
    })}\n\n`;
  let finish = 'stop';
  frames.push(chunk({ role: 'assistant', content: '' }));
  const say = (text: string) => {
    const half = Math.ceil(text.length / 2);
    frames.push(chunk({ content: text.slice(0, half) }), chunk({ content: text.slice(half) }));
  };
  if (step.does === 'call') {
    const thought = thoughtOf(step.round);
    const details = [{ type: 'reasoning.text', index: 0, text: thought, signature: hash(thought) }];
    if (rules.thoughts === 'reasoning_details') {
      frames.push(
        chunk({ reasoning_details: [{ type: 'reasoning.text', index: 0, text: thought.slice(0, 5) }] }),
        chunk({ reasoning_details: [{ type: 'reasoning.text', index: 0, text: thought.slice(5) }] }),
        chunk({ reasoning_details: [{ index: 0, signature: hash(thought) }] }),
      );
    } else if (rules.thoughts) {
      frames.push(chunk({ [rules.thoughts]: thought.slice(0, 5) }), chunk({ [rules.thoughts]: thought.slice(5) }));
    }
    for (const [place, key] of step.keys.entries()) {
      const id = rules.callIds === 'nine' ? hash(`${seed}${place}`).slice(0, 9) : `call_${seed.slice(0, 12)}_${place}`;
      const signature = hash(`${id} signed`);
      if (rules.signsCalls && place === 0) sent.set(id, signature);
      else if (rules.thoughts && place === 0) sent.set(id, rules.thoughts === 'reasoning_details' ? details : thought);
      frames.push(...callFrames(rules, { id, key, place, signature }, chunk));
    }
    finish = rules.isLoose ? 'stop' : 'tool_calls';
  } else if (step.does === 'refuse') frames.push(chunk({ refusal: 'I cannot help with that.' }));
  else if (step.does === 'runOut') {
    say('This text is cut');
    finish = 'length';
  } else if (step.does === 'filter') finish = 'content_filter';
  else say(step.text);
  if (rules.isLoose) frames.push(chunk({}, finish, { usage }));
  else {
    frames.push(chunk({}, finish));
    frames.push(`data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', choices: [], usage })}\n\n`);
  }
  frames.push('data: [DONE]\n\n');
  return { frames };
}

interface OneCall {
  readonly id: string;
  readonly key: string;
  readonly place: number;
  readonly signature: string;
}

/** Loose services give no id or index, and the arguments as an object. */
function callFrames(
  rules: ChatRules,
  { id, key, place, signature }: OneCall,
  chunk: (delta: object) => string,
): string[] {
  if (rules.isLoose)
    return [chunk({ tool_calls: [{ type: 'function', function: { name: 'lookup', arguments: { key } } }] })];
  const text = JSON.stringify({ key });
  const extra = rules.signsCalls && place === 0 ? { extra_content: { google: { thought_signature: signature } } } : {};
  const begin = { index: place, id, type: 'function', function: { name: 'lookup', arguments: '' }, ...extra };
  return [
    chunk({ tool_calls: [begin] }),
    chunk({ tool_calls: [{ index: place, function: { arguments: text.slice(0, 4) } }] }),
    chunk({ tool_calls: [{ index: place, function: { arguments: text.slice(4) } }] }),
  ];
}

const wordsOf = ({ content }: Message): string =>
  typeof content === 'string' ? content : (content ?? []).map(({ text = '' }) => text).join(' ');

function situationOf(messages: readonly Message[], body: Received['body']) {
  const last = messages.findLastIndex(({ role }) => role === 'user');
  const person = messages[last];
  const later = messages.slice(last + 1);
  const parts = typeof person?.content === 'object' && person.content ? person.content : [];
  return {
    text: person ? wordsOf(person) : '',
    rounds: later.filter(({ tool_calls: calls }) => calls !== undefined).length,
    results: later.filter(({ role }) => role === 'tool').map(wordsOf),
    pictures: parts.flatMap(({ image_url: image }) => {
      const [, type, data] = /^data:([^;]+);base64,(.*)$/s.exec(image?.url ?? '') ?? [];
      return type !== undefined && data !== undefined ? [described(type, data)] : [];
    }),
    wantsJson: (body['response_format'] as { type?: string } | undefined)?.type === 'json_schema',
  };
}

/** The services, and a model of each. */
export const chatServices: readonly ChatRules[] = [
  {
    name: 'openai',
    models: ['gpt-4.1', 'gpt-5.6-sol'],
    refusesToolsOf: /^gpt-5\.[6-9]/,
    limitField: 'max_completion_tokens',
  },
  {
    name: 'deepseek',
    models: ['deepseek-v4-pro'],
    thoughts: 'reasoning_content',
    thoughtsBack: 'always',
    limitField: 'max_tokens',
  },
  { name: 'kimi', models: ['kimi-k3'], thoughts: 'reasoning_content', thoughtsBack: 'always' },
  { name: 'glm', models: ['glm-5.3'], thoughts: 'reasoning_content', thoughtsBack: 'same' },
  { name: 'vllm', models: ['qwen3'], thoughts: 'reasoning', thoughtsBack: 'same', windowField: 'max_model_len' },
  {
    name: 'openrouter',
    models: ['anthropic/claude-sonnet-5'],
    thoughts: 'reasoning_details',
    thoughtsBack: 'same',
    sendsComments: true,
    cost: 0.0125,
    windowField: 'context_length',
  },
  {
    name: 'mistral',
    models: ['mistral-medium-latest'],
    callIds: 'nine',
    refusesUserAfterTool: true,
    thoughtsBack: 'never',
  },
  { name: 'groq', models: ['openai/gpt-oss-120b'], thoughts: 'reasoning', thoughtsBack: 'never' },
  { name: 'xai', models: ['grok-4.7'] },
  { name: 'azure', models: ['my-deployment'], keyHeader: 'api-key', limitField: 'max_completion_tokens' },
  { name: 'gemini', models: ['gemini-3.8-flash'], signsCalls: true, errorsAreList: true },
  { name: 'ollama', models: ['llama3.3'], isLoose: true },
  { name: 'llama.cpp', models: ['local'], isLoose: true },
  { name: 'lmstudio', models: ['local-model'], isLoose: true, thoughts: 'reasoning_content' },
];
