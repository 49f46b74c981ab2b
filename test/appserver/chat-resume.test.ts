/** Chat requests whose agent server is killed in their turn: the same request to the next server joins the turn that continues. */
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import OpenAI from 'openai';
import t, { type Test } from 'tap';
import { unusedPort } from '../ports.ts';
import { Client, eventually, stateOf } from './harness.ts';
import { killable } from './killable.ts';

async function place(t: Test, kills: number) {
  const port = await unusedPort();
  const Api = { Enabled: true, Port: port, ApiKey: 'a-key', AutoApprove: true, DisconnectGraceMs: 0 };
  const client = new OpenAI({ baseURL: `http://127.0.0.1:${port}/v1`, apiKey: 'a-key', maxRetries: 0 });
  return { ...(await killable(t, kills, { Api })), client };
}

const messages = [{ role: 'user' as const, content: 'work' }];
const whole = { model: 'mock-model', messages };
const streamed = { ...whole, stream: true as const, stream_options: { include_usage: true } };
const session = { 'x-session-id': 's' };

/** Reads a stream. `ended` resolves with the error that broke it. */
function textOf(stream: AsyncIterable<OpenAI.ChatCompletionChunk>) {
  const heard = { text: '', usage: undefined as unknown, ended: Promise.resolve<unknown>(undefined) };
  heard.ended = (async () => {
    for await (const { choices, usage } of stream) {
      heard.text += choices[0]?.delta.content ?? '';
      heard.usage = usage ?? heard.usage;
    }
  })().catch((error: unknown) => error);
  return heard;
}

const kinds = {
  'a session': { 'x-session-id': 'a' },
  'a key and a session': { 'x-session-id': 'b', 'idempotency-key': 'k' },
  'a key without a session': { 'idempotency-key': 'l' },
};

t.test(
  'after three kills the repeated requests of sessions and keys join their turns, streamed and whole',
  async (t) => {
    const kills = 3;
    const names = Object.entries(kinds);
    const { asked, client, start, effects } = await place(t, kills * names.length);
    const ask = () =>
      Promise.all(
        names.map(async ([name, headers]) => ({
          name,
          heard: textOf(await client.chat.completions.create(streamed, { headers })),
        })),
      );
    for (let kill = 1; kill <= kills; kill += 1) {
      const server = await start();
      const requests = await ask();
      await eventually(() => asked() === names.length * (1 + kill) || undefined, 'the requests to the model');
      for (const { name, heard } of requests)
        await eventually(() => (heard.text.includes('half') ? true : undefined), `half an answer of ${name}`);
      await server.kill();
      for (const { name, heard } of requests) t.ok(await heard.ended, `the killed server ends no answer of ${name}`);
    }
    await start();
    for (const { name, heard } of await ask()) {
      t.equal(await heard.ended, undefined, `the stream of ${name} ends`);
      t.match(heard.text, /the whole answer$/, name);
      t.match(heard.usage, { prompt_tokens: 20, completion_tokens: 4 }, `tokens of the answered requests of ${name}`);
    }
    t.equal(effects(), 'once\n'.repeat(names.length));
    t.equal(asked(), names.length * (2 + kills), 'the model was asked no more');
  },
);

t.test('a repeated request gets the answer of a turn that ended without its client', async (t) => {
  const { client, start, effects, asked } = await place(t, 1);
  const first = await start();
  const cut = client.chat.completions.create(whole, { headers: session }).catch((error: unknown) => error);
  await eventually(() => asked() === 2 || undefined, 'the second request to the model');
  await first.kill();
  t.ok((await cut) instanceof Error);
  await start();
  await eventually(() => asked() === 3 || undefined, 'the answer is repeated');
  const answer = await client.chat.completions.create(whole, { headers: session });
  t.match(answer.choices, [{ message: { content: 'the whole answer' }, finish_reason: 'stop' }]);
  t.match(answer.usage, { prompt_tokens: 20, completion_tokens: 4 });
  t.match(answer, { x_agent: { sessionId: 's', toolCalls: 1, steps: [{ tool: 'Exec' }] } });
  t.equal(effects(), 'once\n');
  await client.chat.completions.create(whole, { headers: session });
  t.equal(effects(), 'once\nonce\n', 'the same words again are a new question');
});

t.test('a keyed request without a session joins its turn with a long conversation, and leaves no thread', async (t) => {
  const { client, start, effects, asked, requests, path } = await place(t, 1);
  const long = 'x'.repeat(200_000);
  const history = [
    { role: 'user' as const, content: long },
    { role: 'assistant' as const, content: 'read' },
  ];
  const request = { ...whole, messages: [...history, ...messages] };
  const key = { headers: { 'idempotency-key': 'k' } };
  const first = await start();
  const cut = client.chat.completions.create(request, key).catch((error: unknown) => error);
  await eventually(() => asked() === 2 || undefined, 'the second request to the model');
  await first.kill();
  t.ok((await cut) instanceof Error);
  const server = await start();
  const rpc = await Client.ready(t, server.endpoints.appServerWebSocket ?? '');
  t.strictSame((await rpc.call('thread/list', {})).data, [], 'the thread is not listed');
  const answer = await client.chat.completions.create(request, key);
  t.match(answer.choices, [{ message: { content: 'the whole answer' }, finish_reason: 'stop' }]);
  t.match(answer, { usage: { prompt_tokens: 20, completion_tokens: 4 }, x_agent: { toolCalls: 1 } });
  t.equal(effects(), 'once\n');
  const [before, after] = requests().slice(1);
  t.strictSame(after?.messages.slice(0, 4), before?.messages.slice(0, 4), 'the conversation goes to the model again');
  t.strictSame(await client.chat.completions.create(request, key), answer);
  await server.kill();
  const database = new DatabaseSync(join(stateOf(path), 'state.db'));
  t.teardown(() => database.close());
  t.strictSame(database.prepare('SELECT id FROM threads').all(), [], 'its thread is deleted');
  t.equal(database.prepare('SELECT name FROM chatRequests').all().length, 1, 'its answer stays');
});

t.test('a call of a tool of the caller ends its turn after a kill, too', async (t) => {
  const { client, start, effects, asked } = await place(t, 1);
  const tools = [
    { type: 'function' as const, function: { name: 'mine', parameters: { type: 'object', properties: {} } } },
  ];
  const request = { ...whole, tools, x_agent: { serverTools: true } };
  const first = await start();
  const cut = client.chat.completions.create(request, { headers: session }).catch((error: unknown) => error);
  await eventually(() => asked() === 2 || undefined, 'the second request to the model');
  await first.kill();
  t.ok((await cut) instanceof Error);
  await start();
  const answer = await client.chat.completions.create(request, { headers: session });
  t.match(answer.choices, [{ message: { tool_calls: [{ id: 'call_mine' }] }, finish_reason: 'tool_calls' }]);
  t.equal(effects(), 'once\n');
});

t.test('a request whose agent server is stopped in its turn joins it at the next start', async (t) => {
  const { client, start, effects, asked } = await place(t, 1);
  const first = await start();
  const cut = client.chat.completions.create(whole, { headers: session }).catch((error: unknown) => error);
  await eventually(() => asked() === 2 || undefined, 'the second request to the model');
  await first.kill('SIGTERM');
  t.ok((await cut) instanceof Error);
  await start();
  const answer = await client.chat.completions.create(whole, { headers: session });
  t.match(answer.choices, [{ message: { content: 'the whole answer' }, finish_reason: 'stop' }]);
  t.equal(effects(), 'once\n');
});
