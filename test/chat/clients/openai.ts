/** The official client library (`openai`). */
import OpenAI, { APIError, AuthenticationError, BadRequestError, NotFoundError } from 'openai';
import type { Test } from 'tap';
import { parrotModel } from './parrot.ts';
import { type Target, untilIdle, weather } from './target.ts';

const ask = (content: string) => ({ model: parrotModel, messages: [{ role: 'user' as const, content }] });

export function openaiClient(t: Test, target: Target): void {
  const client = new OpenAI({ baseURL: target.baseUrl, apiKey: target.key });

  t.test('openai: create', async (t) => {
    const { data, response } = await client.chat.completions.create(ask('say hello there')).withResponse();
    t.equal(response.status, 200);
    t.equal(data.choices[0]?.message.content, 'hello there');
    t.equal(data.choices[0]?.finish_reason, 'stop');
    t.match(data.usage, { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 });
  });

  t.test('openai: create with stream', async (t) => {
    const stream = await client.chat.completions.create({
      ...ask('say hello there'),
      stream: true,
      stream_options: { include_usage: true },
    });
    let text = '';
    let usage: unknown;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? '';
      usage = chunk.usage ?? usage;
    }
    t.equal(text, 'hello there');
    t.match(usage, { total_tokens: 5 });
  });

  t.test('openai: a naive loop over a stream', async (t) => {
    const stream = await client.chat.completions.create({ ...ask('say a b c'), stream: true });
    let text = '';
    for await (const chunk of stream) {
      const [choice] = chunk.choices;
      if (!choice) throw new Error('a chunk without a choice');
      text += choice.delta.content ?? '';
    }
    t.equal(text, 'a b c');
  });

  t.test('openai: the stream() helper', async (t) => {
    const runner = client.chat.completions.stream(ask('think deeply'));
    const deltas: string[] = [];
    runner.on('content', (delta) => deltas.push(delta));
    const final = await runner.finalChatCompletion();
    t.equal(final.choices[0]?.message.content, 'thought');
    t.equal(final.choices[0]?.finish_reason, 'stop');
    t.equal(deltas.join(''), 'thought');
  });

  t.test('openai: tools of the caller, whole and streamed', async (t) => {
    const tools = [{ type: 'function' as const, function: { ...weather, parameters: { ...weather.parameters } } }];
    const body = { ...ask('call get_weather {"city":"Oslo"}'), tools };
    const whole = await client.chat.completions.create(body);
    t.equal(whole.choices[0]?.finish_reason, 'tool_calls');
    const [call] = whole.choices[0]?.message.tool_calls ?? [];
    t.match(call, { type: 'function', function: { name: 'get_weather', arguments: '{"city":"Oslo"}' } });
    const said = whole.choices.map(({ message }) => message);
    const result = { role: 'tool' as const, tool_call_id: call?.id ?? '', content: 'rain' };
    const next = await client.chat.completions.create({ ...body, messages: [...body.messages, ...said, result] });
    t.equal(next.choices[0]?.message.content, 'result: rain');
    const streamed = await client.chat.completions.stream(body).finalChatCompletion();
    t.match(streamed.choices[0], {
      finish_reason: 'tool_calls',
      message: { tool_calls: [{ type: 'function', function: { name: 'get_weather', arguments: '{"city":"Oslo"}' } }] },
    });
  });

  t.test('openai: runTools', async (t) => {
    for (const stream of [false, true]) {
      const asked: unknown[] = [];
      const tools = [
        {
          type: 'function' as const,
          function: {
            name: weather.name,
            description: weather.description,
            parameters: { ...weather.parameters } as Record<string, unknown>,
            parse: (text: string) => JSON.parse(text) as object,
            function: (args: object) => {
              asked.push(args);
              return 'rain';
            },
          },
        },
      ];
      const body = { ...ask('call get_weather {"city":"Oslo"}'), tools };
      const runner = stream
        ? client.chat.completions.runTools({ ...body, stream: true })
        : client.chat.completions.runTools(body);
      t.equal(await runner.finalContent(), 'result: rain');
      t.strictSame(asked, [{ city: 'Oslo' }]);
    }
  });

  t.test('openai: parse with a JSON schema', async (t) => {
    const completion = await client.chat.completions.parse({
      ...ask('form'),
      response_format: {
        type: 'json_schema',
        json_schema: {
          name: 'answer',
          strict: true,
          schema: { type: 'object', properties: { answer: { type: 'number' } }, required: ['answer'] },
        },
      },
    });
    t.strictSame(JSON.parse(completion.choices[0]?.message.content ?? ''), { answer: 42 });
  });

  t.test('openai: models', async (t) => {
    const ids: string[] = [];
    for await (const { id } of client.models.list()) ids.push(id);
    t.ok(ids.includes(parrotModel));
    t.match(await client.models.retrieve(parrotModel), { id: parrotModel, object: 'model' });
    await t.rejects(client.models.retrieve('nobody/has it'), { status: 404, code: 'model_not_found' });
  });

  t.test('openai: an abort in the middle of a stream ends the turn', async (t) => {
    const stream = await client.chat.completions.create({ ...ask('wait'), stream: true });
    let text = '';
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? '';
      if (text === 'waiting') break;
    }
    t.equal(text, 'waiting');
    await untilIdle(target);
    const controller = new AbortController();
    const whole = client.chat.completions.create(ask('wait'), { signal: controller.signal });
    setTimeout(() => controller.abort(), 100);
    await t.rejects(whole, { name: 'Error', message: /abort/i });
    await untilIdle(target);
  });

  t.test('openai: errors arrive with their classes, codes and parameters', async (t) => {
    const unauthorised = new OpenAI({ baseURL: target.baseUrl, apiKey: 'wrong' });
    const refused = await unauthorised.chat.completions.create(ask('say hi')).catch((error: unknown) => error);
    t.ok(refused instanceof AuthenticationError);
    t.match(refused, { status: 401, code: 'invalid_api_key', type: 'invalid_request_error' });
    const invalid = await client.chat.completions.create({ ...ask('say hi'), n: 2 }).catch((error: unknown) => error);
    t.ok(invalid instanceof BadRequestError);
    t.match(invalid, { code: 'unsupported_parameter', param: 'n' });
    const missing = await client.embeddings.create({ model: 'x', input: 'y' }).catch((error: unknown) => error);
    t.ok(missing instanceof NotFoundError);
    t.match(missing, { code: 'unknown_url', message: /\/v1\/chat\/completions/ });
    const once = new OpenAI({ baseURL: target.baseUrl, apiKey: target.key, maxRetries: 0 });
    const failed = await once.chat.completions.create(ask('fail 401')).catch((error: unknown) => error);
    t.ok(failed instanceof APIError);
    t.match(failed, { status: 502, code: 'upstream_auth' });
    t.notOk(failed instanceof AuthenticationError, 'the caller’s own key is fine');
  });
}
