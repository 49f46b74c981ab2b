/** LangChain (`@langchain/openai`). */
import type { AIMessageChunk } from '@langchain/core/messages';
import { HumanMessage, SystemMessage, ToolMessage } from '@langchain/core/messages';
import { ChatOpenAI } from '@langchain/openai';
import type { Test } from 'tap';
import { parrotModel } from './parrot.ts';
import { type Target, untilIdle, weather } from './target.ts';

export function langChain(t: Test, target: Target): void {
  const modelFor = (apiKey: string, model = parrotModel) =>
    new ChatOpenAI({ model, apiKey, maxRetries: 0, configuration: { baseURL: target.baseUrl } });
  const model = modelFor(target.key);

  t.test('LangChain: invoke', async (t) => {
    const answer = await model.invoke([new SystemMessage('be brief'), new HumanMessage('say hello there')]);
    t.equal(answer.content, 'hello there');
    t.match(answer.usage_metadata, { input_tokens: 3, output_tokens: 2, total_tokens: 5 });
    t.match(answer.response_metadata, { finish_reason: 'stop' });
  });

  t.test('LangChain: a developer message', async (t) => {
    const modern = modelFor(target.key, 'gpt-5');
    t.equal((await modern.invoke([new SystemMessage('be brief'), new HumanMessage('say hi')])).content, 'hi');
  });

  t.test('LangChain: stream, with usage', async (t) => {
    let whole: AIMessageChunk | undefined;
    for await (const chunk of await model.stream('say hello there')) whole = whole ? whole.concat(chunk) : chunk;
    t.equal(whole?.content, 'hello there');
    t.match(whole?.usage_metadata, { total_tokens: 5 });
  });

  t.test('LangChain: tools of the caller, whole and streamed', async (t) => {
    const tools = [{ type: 'function' as const, function: { ...weather, parameters: { ...weather.parameters } } }];
    const bound = model.bindTools(tools);
    const question = new HumanMessage('call get_weather {"city":"Oslo"}');
    const answer = await bound.invoke([question]);
    t.match(answer.tool_calls, [{ name: 'get_weather', args: { city: 'Oslo' }, id: String }]);
    t.strictSame(answer.invalid_tool_calls, []);
    const result = new ToolMessage({ content: 'rain', tool_call_id: answer.tool_calls?.[0]?.id ?? '' });
    t.equal((await bound.invoke([question, answer, result])).content, 'result: rain');
    let whole: AIMessageChunk | undefined;
    for await (const chunk of await bound.stream([question])) whole = whole ? whole.concat(chunk) : chunk;
    t.match(whole?.tool_calls, [{ name: 'get_weather', args: { city: 'Oslo' } }]);
  });

  t.test('LangChain: structured output', async (t) => {
    const structured = model.withStructuredOutput(
      { title: 'answer', type: 'object', properties: { answer: { type: 'number' } }, required: ['answer'] },
      { method: 'jsonSchema' },
    );
    t.strictSame(await structured.invoke('form'), { answer: 42 });
  });

  t.test('LangChain: an abort ends the turn', async (t) => {
    const controller = new AbortController();
    let text = '';
    await t.rejects(async () => {
      for await (const chunk of await model.stream('wait', { signal: controller.signal })) {
        text += chunk.content;
        if (text === 'waiting') controller.abort();
      }
    });
    t.equal(text, 'waiting');
    await untilIdle(target);
  });

  t.test('LangChain: errors', async (t) => {
    const failure = (failing: ChatOpenAI, words: string) => failing.invoke(words).catch((error: unknown) => error);
    t.match(await failure(modelFor('wrong'), 'say hi'), { status: 401 });
    t.match(await failure(model, 'fail 401'), { status: 502 });
    t.match(await failure(model, 'fail 400'), { status: 400, message: /unwell/ });
  });
}
