/** Calls of the caller's tools, piece by piece while the model writes them. */
import fc from 'fast-check';
import OpenAI from 'openai';
import t from 'tap';
import { type CallPiece, ClientCalls } from '../../src/chat/client-calls.ts';
import { hangsInCall, says, scripted, writes } from '../agui/model.ts';
import { type Chunk, chat, chunksOf, framesOf, reading, user } from './harness.ts';

const weather = {
  type: 'function' as const,
  function: { name: 'get_weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } },
};
const call = { callId: 'w1', name: 'get_weather' };
const asked = { messages: [user('weather?')], tools: [weather], stream: true };
const piecesOf = (chunks: Chunk[]) => chunks.flatMap(({ choices }) => choices[0]?.delta.tool_calls ?? []);

t.test('the first fragment names the call, the others bring its arguments', async (t) => {
  const { post, url } = await chat(t, scripted(writes(call, '{"ci', 'ty":"Os', 'lo"}')));
  const chunks = chunksOf(await (await post(asked)).text());
  t.strictSame(piecesOf(chunks), [
    { index: 0, id: 'w1', type: 'function', function: { name: 'get_weather', arguments: '' } },
    { index: 0, function: { arguments: '{"ci' } },
    { index: 0, function: { arguments: 'ty":"Os' } },
    { index: 0, function: { arguments: 'lo"}' } },
  ]);
  t.equal(chunks.at(-1).choices[0].finish_reason, 'tool_calls');
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 });
  const stream = client.chat.completions.stream({
    model: 'x',
    messages: [{ role: 'user', content: '?' }],
    tools: [weather],
  });
  t.match((await stream.finalChatCompletion()).choices[0]?.message.tool_calls, [
    { id: 'w1', function: { name: 'get_weather', arguments: '{"city":"Oslo"}' } },
  ]);
});

t.test('interleaved calls stay apart, beside a complete one', async (t) => {
  const other = { callId: 'w2', name: 'get_weather' };
  const provider = scripted((_, emit) => {
    const piece = (to: typeof call, index: number, argumentsDelta: string) =>
      emit({ type: 'toolCallDelta', index, ...to, argumentsDelta });
    piece(call, 0, '{"city":');
    piece(other, 1, '{"city"');
    piece(call, 0, '"Oslo"}');
    piece(other, 1, ':"Bergen"}');
    emit({ type: 'toolCall', call: { ...call, arguments: '{"city":"Oslo"}' } });
    emit({ type: 'toolCall', call: { ...other, arguments: '{"city":"Bergen"}' } });
    emit({ type: 'toolCall', call: { callId: 'w3', name: 'get_weather', arguments: '{}' } });
    emit({ type: 'finish', reason: 'toolCalls' });
  });
  const { post } = await chat(t, provider);
  const put: Record<number, { id: string; text: string }> = {};
  for (const { index, id, function: fn } of piecesOf(chunksOf(await (await post(asked)).text()))) {
    const known = put[index];
    if (known) known.text += fn.arguments;
    else put[index] = { id, text: fn.arguments };
  }
  t.strictSame(put, {
    0: { id: 'w1', text: '{"city":"Oslo"}' },
    1: { id: 'w2', text: '{"city":"Bergen"}' },
    2: { id: 'w3', text: '{}' },
  });
});

t.test('calls of server tools are not sent as fragments', async (t) => {
  const provider = scripted(writes({ callId: 'l1', name: 'Look' }, '{"a"', ':1}'), says('Done.'));
  const { post } = await chat(t, provider);
  const chunks = chunksOf(await (await post({ ...asked, x_agent: { serverTools: true } })).text());
  t.strictSame(piecesOf(chunks), []);
});

t.test('a call whose name comes late is sent whole', async (t) => {
  const provider = scripted((_, emit) => {
    emit({ type: 'toolCallDelta', index: 0, callId: 'w1', name: '', argumentsDelta: '{"ci' });
    emit({ type: 'toolCallDelta', index: 0, ...call, argumentsDelta: 'ty":1}' });
    emit({ type: 'toolCall', call: { ...call, arguments: '{"city":1}' } });
    emit({ type: 'finish', reason: 'toolCalls' });
  });
  const { post } = await chat(t, provider);
  t.strictSame(piecesOf(chunksOf(await (await post(asked)).text())), [
    { index: 0, id: 'w1', type: 'function', function: { name: 'get_weather', arguments: '{"city":1}' } },
  ]);
});

t.test('a client that reconnects during a call gets its earlier and later fragments', async (t) => {
  const rest = Promise.withResolvers<void>();
  const provider = scripted(async (_, emit) => {
    emit({ type: 'toolCallDelta', index: 0, ...call, argumentsDelta: '{"city":' });
    await rest.promise;
    emit({ type: 'toolCallDelta', index: 0, ...call, argumentsDelta: '"Oslo"}' });
    emit({ type: 'toolCall', call: { ...call, arguments: '{"city":"Oslo"}' } });
    emit({ type: 'finish', reason: 'toolCalls' });
  });
  const { post } = await chat(t, provider);
  const headers = { 'idempotency-key': 'one' };
  const leaving = new AbortController();
  await reading(await post(asked, headers, leaving.signal)).until((text) => text.includes('city'));
  leaving.abort();
  const again = reading(await post(asked, headers));
  await again.until((text) => text.includes('city'));
  rest.resolve();
  t.strictSame(piecesOf(chunksOf(await again.rest())), [
    { index: 0, id: 'w1', type: 'function', function: { name: 'get_weather', arguments: '{"city":' } },
    { index: 0, function: { arguments: '"Oslo"}' } },
  ]);
  t.equal(provider.requests.length, 1);
});

t.test('an unfinished call ends in an error and is in no whole answer', async (t) => {
  const { post, runtime } = await chat(t, scripted(hangsInCall(call, '{"ci')), { timing: { trickleAfterMs: 10 } });
  const streamed = reading(await post(asked));
  await streamed.until((text) => text.includes('get_weather'));
  const whole = reading(await post({ ...asked, stream: false }));
  await whole.until((text) => text.includes('\n'));
  await runtime.close();
  t.match(JSON.parse(framesOf(await streamed.rest()).at(-1) ?? ''), { error: { message: String } });
  await t.rejects(whole.rest(), { message: 'terminated' }, 'after an early head the body is cut');
});

t.test('the fragments of any calls add up to the calls', (t) => {
  const about = { threadId: 'thread', turnId: 'turn' };
  const pieces = fc.array(fc.record({ call: fc.nat(3), text: fc.string({ minLength: 1 }) }));
  fc.assert(
    fc.property(pieces, fc.nat(3), fc.array(fc.boolean(), { minLength: 4, maxLength: 4 }), (written, cut, isMine) => {
      const toolOf = (at: number) => (isMine[at] ? 'mine' : 'theirs');
      const emitted: CallPiece[] = [];
      const calls = new ClientCalls(new Set(['mine']), (piece) => emitted.push(piece));
      for (const { call: at, text } of written) {
        const delta = { itemId: `call_${at}`, deltaKind: 'toolCallArguments', delta: text, tool: toolOf(at) };
        calls.write({ ...about, ...delta });
      }
      const whole = (at: number) => written.flatMap(({ call: of, text }) => (of === at ? [text] : [])).join('');
      // From here on they were not finished.
      const finished = [0, 1, 2, 3].slice(0, cut + 1);
      for (const at of finished) {
        calls.complete({
          callId: `call_${at}`,
          tool: toolOf(at),
          source: isMine[at] ? 'client' : 'builtin',
          arguments: whole(at),
        });
      }
      const put = new Map<number, { id: string; name: string; arguments: string }>();
      for (const { index, begins, arguments: more } of emitted) {
        const known = put.get(index);
        if (begins) put.set(index, { ...begins, arguments: more });
        else if (known) known.arguments += more;
      }
      const expected = (at: number) => ({ id: `call_${at}`, name: 'mine', arguments: whole(at) });
      const mine = finished.filter((at) => isMine[at]).map(expected);
      const byId = (calls: Iterable<{ readonly id: string }>) => [...calls].toSorted((a, b) => (a.id < b.id ? -1 : 1));
      const ids = new Set(mine.map(({ id }) => id));
      t.strictSame(byId([...put.values()].filter(({ id }) => ids.has(id))), mine);
      t.equal(
        [...put.values()].every(({ name }) => name === 'mine'),
        true,
      );
      calls.end();
      t.strictSame(byId(calls.all.map(({ id, name, arguments: text }) => ({ id, name, arguments: text }))), mine);
    }),
    { numRuns: 100 },
  );
  t.end();
});
