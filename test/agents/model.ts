/**
 * A scripted model on loopback that speaks chat completions, Responses, Messages and generateContent. A prompt with “make NAME” is answered with a
 * call of the agent's shell tool that writes that file, one with “Please hold the line” with a command that never ends, one with “Please ask me” with
 * a call of the agent's tool for questions, and the result of the call with “All done.”
 * Another script can be given.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { chat, generated, messages, responses, type Step, type Words } from './dialects.ts';

/** Steps for a prompt. */
export interface Script {
  /** Command for the shell tool; undefined: none. */
  readonly command: (prompt: string) => string | undefined;
  /** Whether the agent's tool for questions is called. */
  readonly asks?: (prompt: string) => boolean;
  /** Answer after the call, or without one. */
  readonly answer: (prompt: string) => string;
}

/** Beginnings of the prompts of these tests. */
const cues = /Please (?:make ([\w.]+)|(hold the line)|ask me|look at this|say that)/g;

const tasks: Script = {
  command(prompt) {
    // Some agents send a prompt that was interrupted again, before the next one.
    const [, file, hold] = [...prompt.matchAll(cues)].at(-1) ?? [];
    return hold ? 'tail -s 1234 -f /dev/null; true' : file && `echo made > ${file}`;
  },
  asks: (prompt) => [...prompt.matchAll(cues)].at(-1)?.[0] === 'Please ask me',
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

/** Tools of Claude Code and of codex. Both take a list of questions. */
const questionTools = ['AskUserQuestion', 'request_user_input'];
const question = {
  ...{ id: 'store', header: 'Store', question: 'Which store shall it use?', multiSelect: false },
  options: [
    { label: 'SQLite', description: 'One file.' },
    { label: 'Postgres', description: 'A server.' },
  ],
};

const isWords = (value: unknown): value is Words =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const list = (value: unknown): readonly Words[] => (Array.isArray(value) ? value.filter(isWords) : []);

/** Tools of a request; Gemini has them in groups. */
const toolsOf = (body: Words) =>
  list(body['tools'])
    .flatMap((tool) => (Array.isArray(tool['functionDeclarations']) ? list(tool['functionDeclarations']) : [tool]))
    .map(toolOf);

/** Name and JSON Schema of a tool in any dialect. */
function toolOf(tool: Words): { readonly name: string; readonly properties: Words } {
  const inner = isWords(tool['function']) ? tool['function'] : tool;
  const schema = inner['parameters'] ?? inner['input_schema'] ?? inner['parametersJsonSchema'];
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
  const messages = [...list(body['input']), ...list(body['messages']), ...list(body['contents'])];
  const last = messages.at(-1) ?? {};
  const isResult =
    last['role'] === 'tool' ||
    /output$/.test(String(last['type'])) ||
    list(last['content']).some(({ type }) => type === 'tool_result') ||
    list(last['parts']).some((part) => 'functionResponse' in part);
  const prompt =
    messages
      .filter(({ role }) => role === 'user')
      .map(({ content, parts }) => textOf(content ?? parts))
      .at(-1) ?? '';
  const said = script.answer(prompt);
  const asking = toolsOf(body).find(({ name }) => questionTools.includes(name));
  if (asking && !isResult && script.asks?.(prompt))
    return { wanted: { tool: asking.name, arguments: { questions: [question] } }, said };
  const command = isResult ? undefined : script.command(prompt);
  const tool = toolsOf(body).find(({ name }) => shellTools.includes(name));
  if (command === undefined || !tool) return { wanted: undefined, said };
  return { wanted: { tool: tool.name, arguments: shellArguments(tool.properties, command) }, said };
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
      ...{ path, text, hasImage: /data:image\/png|"(media_type|mimeType)":"image\/png"/.test(text) },
      tools: toolsOf(body).map(({ name }) => name),
    });
    const isStream = body['stream'] === true || path.endsWith(':streamGenerateContent');
    response.setHeader('content-type', isStream ? 'text/event-stream' : 'application/json');
    const step = decide(body, script);
    if (path.endsWith('/responses')) responses(response, body['model'], step);
    else if (path.endsWith('/messages')) messages(response, body['model'], step);
    else if (/:(stream)?generateContent$/i.test(path)) generated(response, step, isStream);
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
