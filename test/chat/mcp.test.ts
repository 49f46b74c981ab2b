/** The agent as an MCP server over Streamable HTTP: official clients of both generations, tasks, refusals. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Client as NewerClient, StreamableHTTPClientTransport as NewerTransport } from '@modelcontextprotocol/client';
import { CreateTaskResultV2Schema, GetTaskResultV2Schema } from '@modelcontextprotocol/ext-tasks/core/v2';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CallToolResultSchema } from '@modelcontextprotocol/sdk/types.js';
import t, { type Test } from 'tap';
import { gate, say, script } from '../agent/scripted-provider.ts';
import { chat, type Running } from './harness.ts';

const key = 'a-key';
const secured = { api: { ApiKey: key } };
const info = { name: 'test', version: '1' };
const requestInit = { headers: { authorization: `Bearer ${key}` } };
const addressOf = ({ url }: Running): URL => new URL(`${url}/v1/mcp`);

async function olderClient(t: Test, running: Running): Promise<Client> {
  const client = new Client(info);
  // The types of the library are for a different module setting.
  await client.connect(new StreamableHTTPClientTransport(addressOf(running), { requestInit }) as never);
  t.teardown(() => client.close());
  return client;
}

// biome-ignore lint/suspicious/noExplicitAny: any result of the server
type Any = any;
const resultOf = (result: Any): Any => JSON.parse(result.content[0].text);

/** Sends one message. */
async function post(running: Running, message: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Any> {
  const response = await fetch(addressOf(running), {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...requestInit.headers, ...headers },
    body: typeof message === 'string' ? message : JSON.stringify(message),
  });
  const text = await response.text();
  return { status: response.status, text, body: text.startsWith('{') ? JSON.parse(text) : undefined };
}

const meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': info,
  'io.modelcontextprotocol/clientCapabilities': { extensions: { 'io.modelcontextprotocol/tasks': {} } },
};
const newer = (running: Running, method: string, params: object = {}, more = {}) =>
  post(
    running,
    { jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: meta } },
    { 'mcp-protocol-version': '2026-07-28', 'mcp-method': method, ...more },
  );

t.test('2025: a client prompts the agent, then continues and reads the conversation', async (t) => {
  const provider = script(say('one'), say('two'));
  const client = await olderClient(t, await chat(t, provider, secured));
  t.match(await client.listTools(), {
    tools: [{ name: 'prompt_agent', execution: { taskSupport: 'optional' } }, { name: 'read_conversation' }],
  });
  const first = resultOf(await client.callTool({ name: 'prompt_agent', arguments: { text: 'a' } }));
  t.match(first, { status: 'completed', answer: 'one' });
  const { threadId } = first;
  t.match(resultOf(await client.callTool({ name: 'prompt_agent', arguments: { text: 'b', threadId } })), {
    ...{ threadId, answer: 'two' },
  });
  t.equal(provider.requests[1]?.messages.length, 4, 'the model receives the conversation');
  t.match(resultOf(await client.callTool({ name: 'read_conversation', arguments: { threadId } })), { answer: 'two' });
});

t.test('2025: a long turn is a task, which is polled until its result', async (t) => {
  const middle = gate();
  const client = await olderClient(t, await chat(t, script([say('half '), middle, say('done')]), secured));
  const { tasks } = client.experimental;
  const call = tasks.callToolStream({ name: 'prompt_agent', arguments: { text: 'a' } }, CallToolResultSchema, {
    task: {},
  });
  const seen: string[] = [];
  for await (const message of call) {
    seen.push(message.type);
    if (message.type === 'taskCreated') {
      await middle.reached;
      t.match(await tasks.getTask(message.task.taskId), { status: 'working', ttl: null, pollInterval: 1000 });
      middle.open();
    }
    if (message.type === 'result') t.match(resultOf(message.result), { status: 'completed', answer: 'half done' });
  }
  t.equal(seen.at(0), 'taskCreated');
  t.equal(seen.at(-1), 'result');
});

t.test('2025: a cancelled task ends its turn, and cannot be cancelled twice', async (t) => {
  const middle = gate();
  const running = await chat(t, script([say('half '), middle]), secured);
  const client = await olderClient(t, running);
  const { tasks } = client.experimental;
  const call = tasks.callToolStream({ name: 'prompt_agent', arguments: { text: 'a' } }, CallToolResultSchema, {
    task: {},
  });
  const { value } = await call.next();
  const taskId = value?.type === 'taskCreated' ? value.task.taskId : '';
  await middle.reached;
  t.match(await tasks.cancelTask(taskId), { taskId, status: 'cancelled' });
  await t.rejects(tasks.cancelTask(taskId), { code: -32_602, message: /already cancelled/ });
  t.match(await tasks.getTaskResult(taskId, CallToolResultSchema), { isError: true });
  t.equal(running.runtime.turns.count, 0);
});

t.test('2026: a client without tasks waits for the answer; a client with tasks receives a task', async (t) => {
  const middle = gate();
  const running = await chat(t, script(say('one'), [say('two'), middle], say('three')), secured);
  const client = new NewerClient(info, { versionNegotiation: { mode: 'auto' } });
  await client.connect(new NewerTransport(addressOf(running), { requestInit }));
  t.teardown(() => client.close());
  t.equal(client.getNegotiatedProtocolVersion(), '2026-07-28');
  t.match(resultOf(await client.callTool({ name: 'prompt_agent', arguments: { text: 'a' } })), { answer: 'one' });

  const begun = await newer(running, 'tools/call', { name: 'prompt_agent', arguments: { text: 'b' } });
  const { taskId, status } = CreateTaskResultV2Schema.parse(begun.body.result);
  t.equal(status, 'working');
  await middle.reached;
  const get = async () => GetTaskResultV2Schema.parse((await newer(running, 'tasks/get', { taskId })).body.result);
  t.match(await get(), { status: 'working' });
  t.match((await newer(running, 'tasks/update', { taskId, inputResponses: {} })).body.result, {
    resultType: 'complete',
  });
  const ended = running.runtime.turns.running(threadOf(running))?.ended;
  middle.open();
  await ended;
  const done = await get();
  t.match(done, { status: 'completed' });
  t.match(resultOf('result' in done ? done.result : undefined), { answer: 'two' });
  t.match((await newer(running, 'tasks/cancel', { taskId })).body.result, { resultType: 'complete' }, 'too late');
});

/** Thread of the running turn. */
const threadOf = ({ runtime }: Running): string => runtime.turns.registered[0]?.threadId ?? '';

t.test('a client that disconnects ends its turn, unless it sent waitSeconds', async (t) => {
  const [first, second] = [gate(), gate()];
  const running = await chat(t, script([say('a'), first], [say('b'), second, say('c')]), {
    api: { ...secured.api, DisconnectGraceMs: 0 },
  });
  const client = await olderClient(t, running);
  const leaving = new AbortController();
  const left = client.callTool({ name: 'prompt_agent', arguments: { text: 'a' } }, undefined, {
    signal: leaving.signal,
  });
  await first.reached;
  const ended = running.runtime.turns.running(threadOf(running))?.ended;
  // The library only sends a notification, but this server reacts to a closed connection.
  await client.close();
  leaving.abort();
  await t.rejects(left);
  await ended;
  const next = await olderClient(t, running);
  const early = resultOf(await next.callTool({ name: 'prompt_agent', arguments: { text: 'b', waitSeconds: 0 } }));
  t.match(early, { status: 'in_progress' });
  await second.reached;
  second.open();
  const { threadId } = early;
  const late = await next.callTool({ name: 'read_conversation', arguments: { threadId, waitSeconds: 60 } });
  t.match(resultOf(late), { status: 'completed', answer: 'bc' });
});

t.test('a slow answer reports progress', async (t) => {
  const middle = gate();
  const running = await chat(t, script([middle, say('late')]), { ...secured, timing: { heartbeatMs: 5 } });
  const client = await olderClient(t, running);
  let progress = 0;
  const result = await client.callTool({ name: 'prompt_agent', arguments: { text: 'a' } }, undefined, {
    onprogress() {
      progress += 1;
      if (progress === 3) middle.open();
    },
  });
  t.match(resultOf(result), { answer: 'late' });
});

t.test('a progress token that is neither text nor number is ignored, however deep it is', async (t) => {
  const middle = gate();
  const running = await chat(t, script([middle, say('late')]), { ...secured, timing: { heartbeatMs: 5 } });
  const token = `${'['.repeat(50_000)}${']'.repeat(50_000)}`;
  const args = '{"text":"a"}';
  const params = `{"name":"prompt_agent","arguments":${args},"_meta":{"progressToken":${token}}}`;
  const answered = post(running, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`);
  await middle.reached;
  t.equal((await post(running, { jsonrpc: '2.0', id: 2, method: 'ping' })).status, 200);
  middle.open();
  const { status, text } = await answered;
  t.equal(status, 200);
  t.notMatch(text, /notifications/);
  t.match(text, /late/);
  t.strictSame(running.bugs, []);
  t.notMatch(running.log.join(''), /bug/);
});

t.test('prompts of one conversation at once continue it one after the other', async (t) => {
  const provider = script(say('one'), say('two'), say('three'), say('four'));
  const running = await chat(t, provider, secured);
  const client = await olderClient(t, running);
  const prompt = async (args: object) =>
    resultOf(await client.callTool({ name: 'prompt_agent', arguments: { ...args } }));
  const { threadId } = await prompt({ text: 'a' });
  // The model is described late, as after a start: all requests are there by then.
  const describe = running.runtime.describe.bind(running.runtime);
  running.runtime.describe = async () => {
    await sleep(50);
    return describe();
  };
  const answers = await Promise.all(['b', 'c', 'd'].map((text) => prompt({ text, threadId })));
  t.strictSame(
    answers.map((each) => each.threadId),
    [threadId, threadId, threadId],
  );
  t.equal(provider.requests[3]?.messages.length, 8, 'the last one has all others before it');
});

t.test('requests without the key, from other origins or with mismatched headers are refused', async (t) => {
  const running = await chat(t, script(), secured);
  const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
  t.match(await post(running, ping), { status: 200, body: { result: {} } });
  t.equal((await post(running, ping, { authorization: 'Bearer wrong' })).status, 401);
  t.equal((await post(running, ping, { origin: 'https://evil.example' })).status, 403);
  t.equal((await post(running, ping, { 'content-type': 'text/plain' })).status, 415);
  t.equal((await post(running, '{')).status, 400);
  t.match(await post(running, [ping]), { status: 400, body: { error: { code: -32_600 } } });
  t.match(await post(running, { ...ping, params: [] }), { status: 200, body: { error: { code: -32_602 } } });
  t.equal((await post(running, { jsonrpc: '2.0', method: 'notifications/initialized' })).status, 202);
  t.equal((await post(running, ping, { 'mcp-protocol-version': '1999-01-01' })).status, 400);
  const method = { 'mcp-method': 'tools/call' };
  t.match(await newer(running, 'tools/list', {}, method), { status: 400, body: { error: { code: -32_020 } } });
  t.match(await newer(running, 'nothing/here'), { status: 404, body: { error: { code: -32_601 } } });
  const version = { ...meta, 'io.modelcontextprotocol/protocolVersion': '2099-01-01' };
  const future = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta: version } };
  const refused = await post(running, future, { 'mcp-protocol-version': '2099-01-01', 'mcp-method': 'tools/list' });
  t.match(refused, { status: 400, body: { error: { code: -32_022, data: { supported: ['2026-07-28'] } } } });
  for (const verb of ['GET', 'DELETE']) {
    const response = await fetch(addressOf(running), { method: verb, ...requestInit });
    t.match([response.status, response.headers.get('allow')], [405, 'POST']);
  }
});

t.test('invalid calls, foreign conversations and turns above the limit change nothing', async (t) => {
  const middle = gate();
  const running = await chat(t, script([middle, say('a')]), { api: { ...secured.api, MaxConcurrentTurns: 1 } });
  const client = await olderClient(t, running);
  const { thread } = running.runtime.threads.start({ identity: { channelName: 'test' } });
  const call = (name: string, args: object) => client.callTool({ name, arguments: { ...args } });
  t.match(await call('prompt_agent', {}), { isError: true, content: [{ text: /^text must be/ }] });
  for (const [args, words] of [
    [{}, 'text must be given.'],
    [{ text: '' }, 'text must be a text.'],
    [{ text: 'a', waitSeconds: -1 }, 'waitSeconds must be at least 0.'],
    [{ text: 'a', waitSeconds: 601 }, 'waitSeconds must be at most 600.'],
    [{ text: 'a', other: 1 }, 'other must be left out.'],
  ] as const)
    t.match(await call('prompt_agent', args), { isError: true, content: [{ text: words }] });
  for (const threadId of [thread.id, 'unknown']) {
    t.match(await call('prompt_agent', { text: 'a', threadId }), { isError: true, content: [{ text: /no conv/ }] });
    t.match(await call('read_conversation', { threadId }), { isError: true });
  }
  await t.rejects(client.experimental.tasks.getTask('resp_0'), { code: -32_602 });
  await t.rejects(call('toString', {}), { code: -32_602 });
  t.match(resultOf(await call('prompt_agent', { text: 'a', waitSeconds: 0 })), { status: 'in_progress' });
  t.match(await call('prompt_agent', { text: 'b' }), { isError: true, content: [{ text: /1 turns run already/ }] });
  middle.open();
});
