/** The AI SDK (`ai`) with its providers that speak chat completions or responses. */
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { APICallError, generateText, jsonSchema, type LanguageModel, Output, stepCountIs, streamText, tool } from 'ai';
import type { Test } from 'tap';
import { parrotModel } from './parrot.ts';
import { pixel, seenPixel, type Target, untilIdle, weather } from './target.ts';

interface Flavour {
  readonly name: string;
  readonly model: (key: string) => LanguageModel;
  /** True when the client shows the thoughts of the model. */
  readonly hasReasoning: boolean;
}

function flavours({ baseUrl }: Target): Flavour[] {
  return [
    {
      name: '@ai-sdk/openai-compatible',
      model: (apiKey) =>
        createOpenAICompatible({
          name: 'oratorio',
          baseURL: baseUrl,
          apiKey,
          includeUsage: true,
          supportsStructuredOutputs: true,
        })(parrotModel),
      hasReasoning: true,
    },
    {
      name: '@ai-sdk/openai .chat()',
      model: (apiKey) => createOpenAI({ baseURL: baseUrl, apiKey }).chat(parrotModel),
      hasReasoning: false,
    },
    {
      name: '@ai-sdk/openai',
      model: (apiKey) => createOpenAI({ baseURL: baseUrl, apiKey })(parrotModel),
      hasReasoning: true,
    },
  ];
}

export function aiSdk(t: Test, target: Target): void {
  for (const flavour of flavours(target)) flavoured(t, target, flavour);
}

function flavoured(t: Test, target: Target, { name, model: modelFor, hasReasoning }: Flavour): void {
  const model = modelFor(target.key);

  t.test(`${name}: generateText`, async (t) => {
    const { text, finishReason, usage } = await generateText({ model, prompt: 'say hello there' });
    t.equal(text, 'hello there');
    t.equal(finishReason, 'stop');
    t.match(usage, { inputTokens: 3, outputTokens: 2 });
  });

  t.test(`${name}: streamText without a single error part`, async (t) => {
    const result = streamText({ model, prompt: 'think deeply' });
    const parts: string[] = [];
    let text = '';
    let reasoning = '';
    for await (const part of result.fullStream) {
      parts.push(part.type);
      if (part.type === 'text-delta') text += part.text;
      if (part.type === 'reasoning-delta') reasoning += part.text;
    }
    t.notOk(parts.includes('error'));
    t.equal(text, 'thought');
    t.equal(reasoning, hasReasoning ? 'deeply' : '');
    t.equal(await result.finishReason, 'stop');
    t.match(await result.usage, { inputTokens: 3, outputTokens: 2 });
  });

  t.test(`${name}: tools of the caller`, async (t) => {
    for (const isStream of [false, true]) {
      const asked: unknown[] = [];
      const settings = {
        model,
        prompt: 'call get_weather {"city":"Oslo"}',
        stopWhen: stepCountIs(3),
        tools: {
          get_weather: tool({
            description: weather.description,
            inputSchema: jsonSchema<{ city: string }>({
              type: 'object',
              properties: { city: { type: 'string' } },
              required: ['city'],
            }),
            execute: async (input) => {
              asked.push(input);
              return 'rain';
            },
          }),
        },
      };
      const text = isStream ? await streamText(settings).text : (await generateText(settings)).text;
      t.match(text, /^result: "?rain"?$/);
      t.strictSame(asked, [{ city: 'Oslo' }]);
    }
  });

  t.test(`${name}: a picture reaches the model`, async (t) => {
    const content = [
      { type: 'file' as const, data: pixel, mediaType: 'image/png' },
      { type: 'text' as const, text: 'see' },
    ];
    const { text } = await generateText({ model, messages: [{ role: 'user', content }] });
    t.equal(text, seenPixel);
  });

  t.test(`${name}: structured output`, async (t) => {
    const schema = jsonSchema<{ answer: number }>({
      type: 'object',
      properties: { answer: { type: 'number' } },
      required: ['answer'],
      additionalProperties: false,
    });
    const { output } = await generateText({ model, prompt: 'form', output: Output.object({ schema }) });
    t.strictSame(output, { answer: 42 });
    const streamed = streamText({ model, prompt: 'form', output: Output.object({ schema }) });
    await streamed.consumeStream();
    t.strictSame(await streamed.output, { answer: 42 });
  });

  t.test(`${name}: an abort ends the turn`, async (t) => {
    const controller = new AbortController();
    const { textStream } = streamText({ model, prompt: 'wait', abortSignal: controller.signal });
    let text = '';
    for await (const piece of textStream) {
      text += piece;
      if (text === 'waiting') controller.abort();
    }
    t.equal(text, 'waiting');
    await untilIdle(target);
  });

  t.test(`${name}: errors`, async (t) => {
    const wrong = await generateText({ model: modelFor('wrong'), prompt: 'say hi' }).catch((error: unknown) => error);
    t.ok(APICallError.isInstance(wrong));
    t.match(wrong, { statusCode: 401, isRetryable: false, message: /key/ });
    const failed = await generateText({ model, prompt: 'fail 400', maxRetries: 0 }).catch((error: unknown) => error);
    t.match(failed, { statusCode: 400, message: /unwell/ });
    const parts: unknown[] = [];
    const stream = streamText({ model, prompt: 'fail 400', maxRetries: 0, onError: () => {} });
    for await (const part of stream.fullStream) if (part.type === 'error') parts.push(part.error);
    t.match(parts, [{ statusCode: 400 }]);
  });
}
