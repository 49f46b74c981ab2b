/** Answers that break off and are repeated by the runtime, as callers of the chat API see them. */
import t from 'tap';
import { ModelError } from '../../src/agent/index.ts';
import { settings } from '../agent/helpers.ts';
import { type Script, says, scripted, writes } from '../agui/model.ts';
import { chat, chunksOf, user } from './harness.ts';

const patient = { runtime: { settings: { ...settings, maxRetries: 2 } } };
const breaks =
  (text: string, call?: { readonly callId: string; readonly name: string }): Script =>
  (_, emit) => {
    if (text !== '') emit({ type: 'text', text });
    if (call) emit({ type: 'toolCallDelta', index: 0, ...call, argumentsDelta: '{"ci' });
    throw new ModelError('upstreamFailed', 'cut', { retryAfterMs: 1 });
  };
const weather = {
  type: 'function' as const,
  function: { name: 'get_weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } },
};
const call = { callId: 'w1', name: 'get_weather' };
const asked = { messages: [user('weather?')], tools: [weather] };

t.test('a whole answer has nothing of the answer that broke off, and no half of a call', async (t) => {
  const { ask, bugs } = await chat(t, scripted(breaks('half an ans'), breaks('an'), says('whole')), patient);
  const { status, body } = await ask('hello');
  t.equal(status, 200);
  t.equal(body.choices[0].message.content, 'whole');
  const { post } = await chat(t, scripted(breaks('', call), writes(call, '{"city":', '"Oslo"}')), patient);
  const answer = await (await post(asked)).json();
  t.match(answer.choices[0].message.tool_calls, [{ id: 'w1', function: { arguments: '{"city":"Oslo"}' } }]);
  t.equal(answer.choices[0].message.tool_calls.length, 1);
  t.same(bugs, []);
});

t.test('a stream keeps the words it has sent, and gets the whole answer as another paragraph', async (t) => {
  const { post } = await chat(t, scripted(breaks('half an ans'), says('who', 'le')), patient);
  const chunks = chunksOf(await (await post({ messages: [user('hello')], stream: true })).text());
  const text = chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('');
  t.equal(text, 'half an ans\n\nwhole');
  t.equal(chunks.at(-1).choices[0]?.finish_reason ?? chunks.at(-2).choices[0]?.finish_reason, 'stop');
});

t.test('a stream that has sent half a call ends with an error: clients join pieces by their index', async (t) => {
  const { post, runtime } = await chat(t, scripted(breaks('', call), writes(call, '{"city":', '"Oslo"}')), patient);
  const text = await (await post({ ...asked, stream: true })).text();
  t.match(text, /"code":"upstream_failed"/);
  t.notMatch(text, /Oslo/);
  await runtime.close();
});
