/** Chat requests whose agent server is killed in their turn: the same request to the next server joins the turn that continues. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import OpenAI from 'openai';
import t, { type Test } from 'tap';
import {
  answered,
  delta,
  event,
  eventStream,
  hang,
  type Reply,
  startMockUpstream,
  write,
} from '../fixtures/upstream/mock-upstream.ts';
import { unusedPort } from '../ports.ts';
import { eventually, makeWorkspace, serving, spawnServer } from './harness.ts';

const usage = { prompt_tokens: 10, completion_tokens: 2 };

/** Calls a command, then breaks off in as many answers as the test kills, and says the whole answer at last. */
const model =
  (broken: { left: number }): Reply =>
  (request) => {
    const { messages } = request.body;
    if (messages.at(-1)?.role === 'user') {
      const call = { id: `call_${messages.length}`, name: 'Exec', arguments: { command: 'echo once >> effects' } };
      return answered(request, { toolCalls: [call], usage });
    }
    if (broken.left > 0) {
      broken.left -= 1;
      return [eventStream, write(event(delta({ role: 'assistant', content: 'half an ' }))), hang];
    }
    return answered(request, { text: 'the whole answer', usage });
  };

async function place(t: Test, kills: number, api: Readonly<Record<string, unknown>> = {}) {
  const port = await unusedPort();
  const upstream = await startMockUpstream(t, model({ left: kills }));
  const { path, home } = makeWorkspace(t, {
    ...{ EndPoint: upstream.url, ApiKey: 'k', Model: 'mock-model', UpstreamRetries: 0 },
    Api: { Enabled: true, Port: port, ApiKey: 'a-key', AutoApprove: true, ...api },
    DashBoard: { Enabled: false },
  });
  const client = new OpenAI({ baseURL: `http://127.0.0.1:${port}/v1`, apiKey: 'a-key', maxRetries: 0 });
  const start = async () => {
    const server = spawnServer(t, { path, home });
    await serving(server, path);
    return server;
  };
  const asked = () => upstream.requests.filter(({ method }) => method === 'POST').length;
  return { asked, client, start, effects: () => readFileSync(join(path, 'effects'), 'utf8') };
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
      server.child.kill('SIGKILL');
      await server.ended;
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
  first.child.kill('SIGKILL');
  await first.ended;
  t.ok((await cut) instanceof Error);
  await start();
  await eventually(() => asked() === 3 || undefined, 'the answer is repeated');
  const answer = await client.chat.completions.create(whole, { headers: session });
  t.match(answer.choices, [{ message: { content: 'the whole answer' }, finish_reason: 'stop' }]);
  t.match(answer.usage, { prompt_tokens: 20, completion_tokens: 4 });
  t.match(answer, { x_agent: { sessionId: 's', toolCalls: 1, steps: [{ tool: 'Exec', outcome: 'completed' }] } });
  t.equal(effects(), 'once\n');
  await client.chat.completions.create(whole, { headers: session });
  t.equal(effects(), 'once\nonce\n', 'the same words again are a new question');
});
