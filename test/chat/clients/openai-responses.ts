/** The responses of the official client library (`openai`). */
import OpenAI from 'openai';
import type { Test } from 'tap';
import { parrotModel } from './parrot.ts';
import { pixel, seenPixel, type Target, weather } from './target.ts';

const ask = (input: string) => ({ model: parrotModel, input });
const tools = [{ type: 'function' as const, ...weather, strict: null }];

export function openaiResponses(t: Test, target: Target): void {
  const client = new OpenAI({ baseURL: target.baseUrl, apiKey: target.key });

  t.test('openai responses: create', async (t) => {
    const response = await client.responses.create(ask('say hello there'));
    t.equal(response.output_text, 'hello there');
    t.match(response, { status: 'completed', error: null, incomplete_details: null });
    t.match(response.usage, { input_tokens: 3, output_tokens: 2, total_tokens: 5 });
  });

  t.test('openai responses: the stream() helper', async (t) => {
    const runner = client.responses.stream(ask('think deeply'));
    const deltas: string[] = [];
    runner.on('response.output_text.delta', ({ delta }) => deltas.push(delta));
    const response = await runner.finalResponse();
    t.equal(deltas.join(''), 'thought');
    t.equal(response.output_text, 'thought');
    const [reasoning] = response.output;
    t.match(reasoning, { type: 'reasoning', summary: [{ type: 'summary_text', text: /deeply/ }] });
  });

  t.test('openai responses: a tool of the caller, its result, and the answer', async (t) => {
    const first = await client.responses.create({ ...ask('call get_weather {"city":"Oslo"}'), tools });
    const [call] = first.output.filter((item) => item.type === 'function_call');
    t.match(call, { name: 'get_weather', arguments: '{"city":"Oslo"}', status: 'completed' });
    const second = await client.responses.create({
      model: parrotModel,
      previous_response_id: first.id,
      tools,
      input: [{ type: 'function_call_output', call_id: call?.call_id ?? '', output: 'snow' }],
    });
    t.equal(second.output_text, 'result: snow');
    t.equal(second.previous_response_id, first.id);
  });

  t.test('openai responses: a picture reaches the model', async (t) => {
    const content = [
      { type: 'input_image' as const, image_url: `data:image/png;base64,${pixel}`, detail: 'auto' as const },
      { type: 'input_text' as const, text: 'see' },
    ];
    const response = await client.responses.create({ model: parrotModel, input: [{ role: 'user', content }] });
    t.equal(response.output_text, seenPixel);
  });

  t.test('openai responses: a stream with a call is read back whole', async (t) => {
    const runner = client.responses.stream({ ...ask('call get_weather {"city":"Oslo"}'), tools });
    const pieces: string[] = [];
    runner.on('response.function_call_arguments.delta', ({ delta }) => pieces.push(delta));
    const response = await runner.finalResponse();
    t.equal(pieces.join(''), '{"city":"Oslo"}');
    t.match(response.output, [{ type: 'function_call', arguments: '{"city":"Oslo"}' }]);
  });

  t.test('openai responses: in the background, read, followed and cancelled', async (t) => {
    const begun = await client.responses.create({ ...ask('wait'), background: true });
    t.equal(begun.status, 'in_progress');
    const stream = await client.responses.create({ ...ask('wait'), background: true, stream: true });
    let id = '';
    let last = -1;
    for await (const event of stream) {
      if (event.type === 'response.created') id = event.response.id;
      last = event.sequence_number;
      if (event.type === 'response.output_text.delta') break;
    }
    const followed = await client.responses.retrieve(id, { stream: true, starting_after: last });
    const cancelled = await client.responses.cancel(id);
    t.equal(cancelled.status, 'cancelled');
    const types: string[] = [];
    for await (const event of followed) {
      t.ok(event.sequence_number > last, 'only later events come');
      types.push(event.type);
    }
    t.equal(types.at(-1), 'response.failed');
    t.equal((await client.responses.retrieve(id)).status, 'cancelled');
    await client.responses.cancel(begun.id);
    for (const each of [begun.id, id]) {
      await client.responses.delete(each);
      await t.rejects(client.responses.retrieve(each), /There is no response/);
    }
  });
}
