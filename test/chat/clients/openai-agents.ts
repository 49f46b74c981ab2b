/** The OpenAI Agents SDK (`@openai/agents`), whose models speak responses. */
import { Agent, Runner, tool } from '@openai/agents-core';
import { OpenAIResponsesModel } from '@openai/agents-openai';
import OpenAI from 'openai';
import type { Test } from 'tap';
import { parrotModel } from './parrot.ts';
import { pixel, seenPixel, type Target, untilIdle, weather } from './target.ts';

export function openaiAgents(t: Test, target: Target): void {
  const client = new OpenAI({ baseURL: target.baseUrl, apiKey: target.key });
  const asked: unknown[] = [];
  const agent = new Agent({
    name: 'weather',
    instructions: 'Answer in one sentence.',
    model: new OpenAIResponsesModel(client, parrotModel),
    tools: [
      tool({
        name: weather.name,
        description: weather.description,
        parameters: {
          type: 'object',
          properties: { city: { type: 'string' } },
          required: ['city'],
          additionalProperties: false,
        },
        execute: (input: unknown) => {
          asked.push(input);
          return 'snow';
        },
      }),
    ],
  });
  const runner = new Runner({ tracingDisabled: true });
  t.beforeEach(() => {
    asked.length = 0;
  });

  t.test('openai agents: a run calls a tool of the caller, and has the answer', async (t) => {
    const { finalOutput, rawResponses } = await runner.run(agent, 'call get_weather {"city":"Oslo"}');
    t.equal(finalOutput, 'result: snow');
    t.same(asked, [{ city: 'Oslo' }]);
    t.equal(rawResponses.length, 2);
    t.ok(rawResponses.every(({ usage }) => usage.totalTokens > 0));
  });

  t.test('openai agents: a streamed run', async (t) => {
    const run = await runner.run(agent, 'call get_weather {"city":"Bergen"}', { stream: true });
    let text = '';
    for await (const event of run) {
      if (event.type === 'raw_model_stream_event' && event.data.type === 'output_text_delta') text += event.data.delta;
    }
    await run.completed;
    t.equal(text, 'result: snow');
    t.equal(run.finalOutput, 'result: snow');
    t.same(asked, [{ city: 'Bergen' }]);
  });

  t.test('openai agents: a picture reaches the model', async (t) => {
    const content = [
      { type: 'input_image' as const, image: `data:image/png;base64,${pixel}` },
      { type: 'input_text' as const, text: 'see' },
    ];
    t.equal((await runner.run(agent, [{ role: 'user', content }])).finalOutput, seenPixel);
  });

  t.test('openai agents: thoughts of the model are items of the run', async (t) => {
    const { finalOutput, newItems } = await runner.run(agent, 'think deeply');
    t.equal(finalOutput, 'thought');
    t.match(newItems[0]?.rawItem, { type: 'reasoning', content: [{ text: 'deeply' }] });
  });

  t.test('openai agents: an abort ends the turn', async (t) => {
    const controller = new AbortController();
    const run = await runner.run(agent, 'wait', { stream: true, signal: controller.signal });
    for await (const event of run) {
      if (event.type === 'raw_model_stream_event' && event.data.type === 'output_text_delta') controller.abort();
    }
    t.equal(run.cancelled, true);
    await untilIdle(target);
  });

  t.test('openai agents: a second run continues the first by its id', async (t) => {
    const first = await runner.run(agent, 'say one');
    t.equal(first.finalOutput, 'one');
    const previousResponseId = first.lastResponseId ?? '';
    t.match(previousResponseId, /^resp_/);
    const second = await runner.run(agent, 'say two', { previousResponseId });
    t.equal(second.finalOutput, 'two');
  });
}
