/**
 * A scripted model on loopback that speaks chat completions, Responses and Messages. A prompt with “make NAME” is answered with a
 * call of the agent's shell tool that writes that file, one with “Please hold the line” with a command that never ends, and the result of the call with “All done.”
 * Another script can be given.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

type Words = Readonly<Record<string, unknown>>;

interface Wanted {
  readonly tool: string;
  readonly arguments: Words;
}

/** Next step for a request: a call, or text. */
interface Step {
  readonly wanted: Wanted | undefined;
  readonly said: string;
}

/** Steps for a prompt. */
export interface Script {
  /** Command for the shell tool; undefined: none. */
  readonly command: (prompt: string) => string | undefined;
  /** Answer after the command, or without one. */
  readonly answer: (prompt: string) => string;
}

const tasks: Script = {
  command(prompt) {
    if (/Please hold the line/.test(prompt)) return 'tail -s 1234 -f /dev/null; true';
    const [, file] = /make ([\w.]+)/.exec(prompt) ?? [];
    return file && `echo made > ${file}`;
  },
  answer: () => 'All done.',
};

interface ModelRequest {
  readonly path: string;
  readonly tools: readonly string[];
  /** The whole body. */
  readonly text: string;
  readonly hasImage: boolean;
}

export interface ScriptedModel {
  readonly url: string;
  /** Requests so far. */
  readonly requests: readonly ModelRequest[];
  close(): Promise<void>;
}

const shellTools = ['exec_command', 'shell_command', 'shell', 'bash', 'Bash', 'run_shell_command', 'developer__shell'];

const isWords = (value: unknown): value is Words =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const list = (value: unknown): readonly Words[] => (Array.isArray(value) ? value.filter(isWords) : []);

/** Name and JSON Schema of a tool in any of the three dialects. */
function toolOf(tool: Words): { readonly name: string; readonly properties: Words } {
  const inner = isWords(tool['function']) ? tool['function'] : tool;
  const schema = inner['parameters'] ?? inner['input_schema'];
  const properties = isWords(schema) && isWords(schema['properties']) ? schema['properties'] : {};
  return { name: String(inner['name'] ?? ''), properties };
}

/** Arguments for a shell tool, by the names that its schema has. */
function shellArguments(properties: Words, command: string): Words {
  const named = ['command', 'cmd'].find((name) => name in properties) ?? 'command';
  const { type } = isWords(properties[named]) ? properties[named] : { type: 'string' };
  return {
    [named]: type === 'array' ? ['bash', '-lc', command] : command,
    ...('description' in properties && { description: 'Writes a file.' }),
    // Out of the sandbox of its own: it asks then.
    ...('sandbox_permissions' in properties && {
      sandbox_permissions: 'require_escalated',
      justification: 'May the file be written?',
    }),
    ...('is_background' in properties && { is_background: false }),
  };
}

const textOf = (content: unknown): string =>
  typeof content === 'string'
    ? content
    : list(content)
        .map(({ text }) => (typeof text === 'string' ? text : ''))
        .join('\n');

function decide(body: Words, script: Script): Step {
  const messages = [...list(body['input']), ...list(body['messages'])];
  const last = messages.at(-1) ?? {};
  const isResult =
    last['role'] === 'tool' ||
    /output$/.test(String(last['type'])) ||
    list(last['content']).some(({ type }) => type === 'tool_result');
  const prompt =
    messages
      .filter(({ role }) => role === 'user')
      .map(({ content }) => textOf(content))
      .at(-1) ?? '';
  const said = script.answer(prompt);
  const command = isResult ? undefined : script.command(prompt);
  const tool = list(body['tools'])
    .map(toolOf)
    .find(({ name }) => shellTools.includes(name));
  if (command === undefined || !tool) return { wanted: undefined, said };
  return { wanted: { tool: tool.name, arguments: shellArguments(tool.properties, command) }, said };
}

const usage = { input: 100, output: 10 };
const event = (response: ServerResponse, data: Words, name?: string): void => {
  response.write(`${name === undefined ? '' : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`);
};

function chat(response: ServerResponse, model: unknown, { wanted, said: text }: Step, isStream: boolean): void {
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

function responses(response: ServerResponse, model: unknown, { wanted, said }: Step): void {
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

function messages(response: ServerResponse, model: unknown, { wanted, said }: Step): void {
  const counted = { input_tokens: usage.input, output_tokens: usage.output };
  const block = wanted ? { type: 'tool_use', id: 'toolu_1', name: wanted.tool, input: {} } : { type: 'text', text: '' };
  const delta = wanted
    ? { type: 'input_json_delta', partial_json: JSON.stringify(wanted.arguments) }
    : { type: 'text_delta', text: said };
  const send = (type: string, rest: Words) => event(response, { type, ...rest }, type);
  const message = {
    id: 'msg_1',
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

/** Starts the model. It ends with `close`. */
export async function startModel(script: Script = tasks): Promise<ScriptedModel> {
  const requests: ModelRequest[] = [];
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = new URL(request.url ?? '/', 'http://model').pathname;
    if (request.method === 'GET') {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ object: 'list', data: [{ id: 'scripted', object: 'model' }] }));
      return;
    }
    const body = (await json(request)) as Words;
    const text = JSON.stringify(body);
    requests.push({
      ...{ path, text, hasImage: text.includes('data:image/png') },
      tools: list(body['tools']).map((tool) => toolOf(tool).name),
    });
    const isStream = body['stream'] === true;
    response.setHeader('content-type', isStream ? 'text/event-stream' : 'application/json');
    const step = decide(body, script);
    if (path.endsWith('/responses')) responses(response, body['model'], step);
    else if (path.endsWith('/messages')) messages(response, body['model'], step);
    else chat(response, body['model'], step, isStream);
  };
  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => {
      response.statusCode = 400;
      response.end(String(error));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    requests,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
