/** Answers of the scripted model in each dialect: a call of a tool, or text. */
import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';

export type Words = Readonly<Record<string, unknown>>;

/** A call of a tool. */
export interface Wanted {
  readonly tool: string;
  readonly arguments: Words;
}

/** Next step for a request: a call, or text. */
export interface Step {
  readonly wanted: Wanted | undefined;
  readonly said: string;
}

const usage = { input: 100, output: 10 };
const event = (response: ServerResponse, data: Words, name?: string): void => {
  response.write(`${name === undefined ? '' : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`);
};

/** Chat completions. */
export function chat(response: ServerResponse, model: unknown, { wanted, said: text }: Step, isStream: boolean): void {
  const base = { id: 'chatcmpl-1', created: 1, model };
  const call = wanted && {
    id: 'call_1',
    type: 'function',
    function: { name: wanted.tool, arguments: JSON.stringify(wanted.arguments) },
  };
  const finish = call ? 'tool_calls' : 'stop';
  const said = call ? { content: null } : { content: text };
  const counted = { prompt_tokens: usage.input, completion_tokens: usage.output, total_tokens: 110 };
  if (!isStream) {
    const message = { role: 'assistant', ...said, ...(call && { tool_calls: [call] }) };
    response.end(
      JSON.stringify({
        ...base,
        object: 'chat.completion',
        choices: [{ index: 0, message, finish_reason: finish }],
        usage: counted,
      }),
    );
    return;
  }
  const chunk = (delta: Words, reason: string | null) =>
    event(response, {
      ...base,
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta, finish_reason: reason }],
    });
  chunk({ role: 'assistant', ...said, ...(call && { tool_calls: [{ index: 0, ...call }] }) }, null);
  chunk({}, finish);
  event(response, { ...base, object: 'chat.completion.chunk', choices: [], usage: counted });
  response.end('data: [DONE]\n\n');
}

export function responses(response: ServerResponse, model: unknown, { wanted, said }: Step): void {
  const counted = { input_tokens: usage.input, output_tokens: usage.output, total_tokens: 110 };
  const item = wanted
    ? {
        type: 'function_call',
        id: 'fc_1',
        call_id: 'call_1',
        name: wanted.tool,
        arguments: JSON.stringify(wanted.arguments),
        status: 'completed',
      }
    : {
        type: 'message',
        id: 'msg_1',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: said, annotations: [] }],
      };
  const whole = { id: 'resp_1', object: 'response', model, status: 'completed', output: [item], usage: counted };
  const send = (type: string, rest: Words) => event(response, { type, ...rest }, type);
  send('response.created', { response: { ...whole, status: 'in_progress', output: [] } });
  send('response.output_item.added', { output_index: 0, item });
  if (!wanted) send('response.output_text.delta', { item_id: 'msg_1', output_index: 0, content_index: 0, delta: said });
  send('response.output_item.done', { output_index: 0, item });
  send('response.completed', { response: whole });
  response.end();
}

export function messages(response: ServerResponse, model: unknown, { wanted, said }: Step): void {
  const counted = { input_tokens: usage.input, output_tokens: usage.output };
  // Claude takes answers with one id for one answer.
  const id = randomUUID();
  const block = wanted
    ? { type: 'tool_use', id: `toolu_${id}`, name: wanted.tool, input: {} }
    : { type: 'text', text: '' };
  const delta = wanted
    ? { type: 'input_json_delta', partial_json: JSON.stringify(wanted.arguments) }
    : { type: 'text_delta', text: said };
  const send = (type: string, rest: Words) => event(response, { type, ...rest }, type);
  const message = {
    id: `msg_${id}`,
    type: 'message',
    role: 'assistant',
    model,
    content: [],
    stop_reason: null,
    usage: counted,
  };
  send('message_start', { message });
  send('content_block_start', { index: 0, content_block: block });
  send('content_block_delta', { index: 0, delta });
  send('content_block_stop', { index: 0 });
  send('message_delta', { delta: { stop_reason: wanted ? 'tool_use' : 'end_turn' }, usage: counted });
  send('message_stop', {});
  response.end();
}

/** `generateContent` of Gemini, also as a stream. */
export function generated(response: ServerResponse, { wanted, said }: Step, isStream: boolean): void {
  const part = wanted ? { functionCall: { name: wanted.tool, args: wanted.arguments } } : { text: said };
  const answer = {
    candidates: [{ index: 0, content: { role: 'model', parts: [part] }, finishReason: 'STOP' }],
    usageMetadata: { promptTokenCount: usage.input, candidatesTokenCount: usage.output, totalTokenCount: 110 },
  };
  if (isStream) event(response, answer);
  response.end(isStream ? undefined : JSON.stringify(answer));
}
