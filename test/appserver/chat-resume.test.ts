/** Chat requests whose agent server is killed in their turn: the same request to the next server joins the turn that continues. */
import OpenAI from 'openai';
import t, { type Test } from 'tap';
import { unusedPort } from '../ports.ts';
import { eventually } from './harness.ts';
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

for (const [name, headers] of [
  ['a session', session],
  ['a key and a session', { ...session, 'idempotency-key': 'k' }],
] as const) {
  t.test(`after two kills a repeated request of ${name} joins its turn, streamed and whole`, async (t) => {
    const { asked, client, start, effects } = await place(t, 2);
    for (const kill of [1, 2]) {
      const server = await start();
      const heard = textOf(await client.chat.completions.create(streamed, { headers }));
      await eventually(() => asked() === 1 + kill || undefined, 'the request to the model');
      await eventually(() => (heard.text.includes('half') ? true : undefined), 'half an answer');
      await server.kill();
      t.ok(await heard.ended, 'the killed server ends no answer');
    }
    await start();
    const last = textOf(await client.chat.completions.create(streamed, { headers }));
    t.equal(await last.ended, undefined, 'the stream ends');
    t.match(last.text, /the whole answer$/);
    t.match(last.usage, { prompt_tokens: 20, completion_tokens: 4 }, 'tokens of the answered requests');
    t.equal(effects(), 'once\n');
    t.equal(asked(), 4, 'the model was asked no more');
  });
}

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
