/** Upstreams as they really are: every deviation of the interface that is known, and what becomes of it. */
import fc from 'fast-check';
import t, { type Test } from 'tap';
import type { ModelEvent, ModelRequest } from '../../src/agent/model.ts';
import { AnswerBody } from '../../src/agent/providers/upstream/answer-body.ts';
import { ChatAnswer } from '../../src/agent/providers/upstream/chat-answer.ts';
import {
  type Action,
  cut,
  delta,
  done,
  event,
  eventStream,
  json,
  type Script,
  startMockUpstream,
  streamed,
  write,
} from '../fixtures/upstream/mock-upstream.ts';
import { collect, hi, openAi, rejection, told } from './provider-helpers.ts';

type Expected = Partial<Record<keyof ReturnType<typeof told>, unknown>>;

async function ask(t: Test, script: Script, request: ModelRequest = hi): Promise<readonly ModelEvent[]> {
  const upstream = await startMockUpstream(t, () => script);
  const provider = openAi(upstream.url);
  t.teardown(() => provider.close());
  return collect(provider, request);
}

async function holds(t: Test, cases: Readonly<Record<string, readonly [Script, Expected]>>): Promise<void> {
  for (const [name, [script, expected]] of Object.entries(cases)) {
    const events = await ask(t, script);
    t.match(told(events), expected, name);
    t.equal(events.filter(({ type }) => type === 'usage').length, 1, `${name}: usage once`);
    t.equal(events.filter(({ type }) => type === 'finish').length, 1, `${name}: finish once`);
    t.equal(events.at(-1)?.type, 'finish', `${name}: finish last`);
  }
}

const word = delta({ content: 'hi' });
const stop = delta({}, 'stop');
const bytes = (...parts: readonly (string | Action)[]): Script => [
  eventStream,
  ...parts.map((part) => (typeof part === 'string' ? write(part) : part)),
];
const head = (headers: Readonly<Record<string, string>>): Action => ({ do: 'head', status: 200, headers });
const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 };
const counted = { type: 'usage' as const, inputTokens: 3, outputTokens: 4 };
const isHi: Expected = { text: 'hi', finish: 'stop', calls: [] };

t.test('streams: framing', async (t) => {
  await holds(t, {
    'carriage returns': [bytes(event(word).replaceAll('\n', '\r\n'), event(stop).replaceAll('\n', '\r\n'), done), isHi],
    'no space after the colon': [bytes(event(word).replace('data: ', 'data:'), done), isHi],
    'single line ends between events': [
      bytes(event(word).slice(0, -1), event(stop).slice(0, -1), 'data: [DONE]\n'),
      isHi,
    ],
    comments: [bytes(': ping\n\n', event(word), ': ping\n', event(stop), done), isHi],
    'ids and names of events': [bytes(`id: 1\nevent: message\n${event(word)}`, event(stop), done), isHi],
    'a foreign event': [
      bytes('event: tool.progress\ndata: {"message":"working"}\n\n', event(word), event(stop), done),
      isHi,
    ],
    'a foreign event that looks like a chunk': [
      bytes(event({ choices: [], x: 1 }), event(word), event(stop), done),
      isHi,
    ],
    'no content type': [[head({}), ...bytes(event(word), event(stop), done).slice(1)], isHi],
    'the wrong content type': [
      [head({ 'content-type': 'application/json' }), ...bytes(event(word), event(stop), done).slice(1)],
      isHi,
    ],
    'plain text': [[head({ 'content-type': 'text/plain' }), ...bytes(event(word), event(stop), done).slice(1)], isHi],
    'no [DONE]': [bytes(event(word), event(stop)), isHi],
    'no empty line at the end': [bytes(event(word), event(stop).trimEnd()), isHi],
    'neither finish nor [DONE]': [bytes(event(word)), isHi],
    'a connection that breaks after the finish': [bytes(event(word), event(stop), cut), isHi],
    'one byte at a time': [
      bytes(
        ...Buffer.from(event(delta({ content: 'ü🎼' })) + done)
          .toString('latin1')
          .split('')
          .map((char) => write(Buffer.from(char, 'latin1'))),
      ),
      { text: 'ü🎼' },
    ],
  });
});

t.test('streams: chunks', async (t) => {
  await holds(t, {
    'only choices with text': [streamed({ choices: [{ delta: { content: 'hi' } }] }), isHi],
    'no finish reason': [streamed(word), isHi],
    'an empty finish reason': [streamed(delta({ content: 'hi' }, ''), stop), isHi],
    'an odd finish reason': [streamed(word, delta({}, 'eos_token')), isHi],
    'no delta on the finish': [streamed(word, { choices: [{ index: 0, finish_reason: 'stop' }] }), isHi],
    'a null delta on the finish': [
      streamed(word, { choices: [{ index: 0, delta: null, finish_reason: 'stop' }] }),
      isHi,
    ],
    'null content': [streamed(delta({ role: 'assistant', content: null }), word, stop), isHi],
    'an odd role': [streamed(delta({ role: 'model', content: 'hi' }), stop), isHi],
    'empty deltas and empty choices as signs of life': [
      streamed(delta({}), { choices: [] }, word, { choices: null }, stop),
      isHi,
    ],
    'text after the finish': [streamed(delta({ content: 'h' }), stop, delta({ content: 'i' })), isHi],
    'content in parts': [
      streamed(
        delta({ content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] }] }),
        delta({ content: [{ type: 'text', text: 'h' }, 'i', { type: 'other' }, null] }),
        stop,
      ),
      { ...isHi, thinking: 'hm' },
    ],
    'a refusal': [streamed(delta({ refusal: 'hi' }), stop), isHi],
    'a whole message in a stream': [
      streamed({ choices: [{ message: { content: 'hi' }, finish_reason: 'stop' }] }),
      isHi,
    ],
    length: [streamed(word, delta({}, 'length')), { finish: 'length' }],
    max_tokens: [streamed(word, delta({}, 'MAX_TOKENS')), { finish: 'length' }],
    content_filter: [streamed(word, delta({}, 'content_filter')), { finish: 'contentFilter' }],
    'tool_calls without calls': [streamed(word, delta({}, 'tool_calls')), isHi],
    'nothing to say': [streamed(delta({ content: '' }), stop), { text: '', finish: 'stop' }],
  });
});

t.test('streams: thoughts under every name, once', async (t) => {
  const expected: Expected = { thinking: 'hm', text: 'hi' };
  await holds(t, {
    reasoning_content: [streamed(delta({ reasoning_content: 'hm' }), word, stop), expected],
    reasoning: [streamed(delta({ reasoning: 'hm' }), word, stop), expected],
    reasoning_details: [
      streamed(delta({ reasoning_details: [{ type: 'reasoning.text', text: 'hm' }] }), word, stop),
      expected,
    ],
    summaries: [
      streamed(
        delta({
          reasoning_details: [
            { type: 'reasoning.summary', summary: 'hm' },
            { type: 'encrypted', data: 'x' },
          ],
        }),
        word,
        stop,
      ),
      expected,
    ],
    'two names at once': [
      streamed(delta({ reasoning: 'hm', reasoning_details: [{ text: 'hm' }], content: '' }), word, stop),
      expected,
    ],
  });
});

t.test('streams: usage', async (t) => {
  const withUsage = (value: unknown) => ({ choices: [], usage: value });
  // "hi" is two bytes; the question is estimated.
  const guessed = { type: 'usage' as const, isEstimated: true, outputTokens: 1 };
  await holds(t, {
    'in a chunk of its own': [streamed(word, stop, withUsage(usage)), { usage: counted }],
    'without choices': [streamed(word, stop, { usage }), { usage: counted }],
    'with null choices': [streamed(word, stop, { choices: null, usage }), { usage: counted }],
    'on the last chunk': [streamed(word, { ...stop, usage }), { usage: counted }],
    'on every chunk': [
      streamed({ ...word, usage: { prompt_tokens: 3, completion_tokens: 1 } }, { ...stop, usage }),
      { usage: counted },
    ],
    'null on the others': [streamed({ ...word, usage: null }, stop, withUsage(usage)), { usage: counted }],
    'after [DONE]': [bytes(event(word), event(stop) + done + event(withUsage(usage))), { usage: counted }],
    'as strings': [streamed(word, stop, withUsage({ prompt_tokens: '3', completion_tokens: '4' })), { usage: counted }],
    'under other names': [streamed(word, stop, withUsage({ input_tokens: 3, output_tokens: 4 })), { usage: counted }],
    missing: [streamed(word, stop), { usage: guessed }],
    empty: [streamed(word, stop, withUsage({})), { usage: guessed }],
    partial: [streamed(word, stop, withUsage({ prompt_tokens: 3 })), { usage: { ...guessed, inputTokens: 3 } }],
    odd: [streamed(word, stop, withUsage({ prompt_tokens: 'many', completion_tokens: -1 })), { usage: guessed }],
  });
});

const piece = (entry: object) => delta({ tool_calls: [entry] });
const calls = (...entries: readonly (readonly [string, string, string])[]): Expected => ({
  calls: entries.map(([callId, name, args]) => ({ callId, name, arguments: args })),
  finish: 'toolCalls',
});
const fn = (name: string | undefined, args?: unknown) => ({ function: { ...(name && { name }), arguments: args } });
const finished = delta({}, 'tool_calls');

t.test('streams: tool calls', async (t) => {
  const one = calls(['a', 'Read', '{"p":1}']);
  const two = calls(['a', 'Read', '{"p":1}'], ['b', 'Find', '{"q":2}']);
  await holds(t, {
    'as it should be': [
      streamed(
        piece({ index: 0, id: 'a', type: 'function', ...fn('Read', '') }),
        piece({ index: 0, ...fn(undefined, '{"p"') }),
        piece({ index: 0, ...fn(undefined, ':1}') }),
        finished,
      ),
      one,
    ],
    'in one chunk': [streamed(piece({ index: 0, id: 'a', ...fn('Read', '{"p":1}') }), finished), one],
    'finish says stop': [streamed(piece({ index: 0, id: 'a', ...fn('Read', '{"p":1}') }), stop), one],
    'no finish at all': [streamed(piece({ index: 0, id: 'a', ...fn('Read', '{"p":1}') })), one],
    'neither finish nor [DONE]': [bytes(event(piece({ index: 0, id: 'a', ...fn('Read', '{"p":1}') }))), one],
    'two, interleaved': [
      streamed(
        piece({ index: 0, id: 'a', ...fn('Read', '{"p"') }),
        piece({ index: 1, id: 'b', ...fn('Find', '{"q"') }),
        piece({ index: 0, ...fn(undefined, ':1}') }),
        piece({ index: 1, ...fn(undefined, ':2}') }),
        finished,
      ),
      two,
    ],
    'two in one chunk': [
      streamed(
        delta({
          tool_calls: [
            { index: 0, id: 'a', ...fn('Read', '{"p":1}') },
            { index: 1, id: 'b', ...fn('Find', '{"q":2}') },
          ],
        }),
        finished,
      ),
      two,
    ],
    'no index, ids': [
      streamed(
        piece({ id: 'a', ...fn('Read', '{"p"') }),
        piece(fn(undefined, ':1}')),
        piece({ id: 'b', ...fn('Find', '{"q":2}') }),
        finished,
      ),
      two,
    ],
    'no index, ids on every piece': [
      streamed(
        piece({ id: 'a', ...fn('Read', '') }),
        piece({ id: 'a', ...fn(undefined, '{"p":1}') }),
        piece({ id: 'b', ...fn('Find', '{"q":2}') }),
        finished,
      ),
      two,
    ],
    'no index, no id': [
      streamed(piece(fn('Read', '{"p"')), piece(fn(undefined, ':1}')), piece(fn('Find', '{"q":2}')), finished),
      calls(['call_1', 'Read', '{"p":1}'], ['call_2', 'Find', '{"q":2}']),
    ],
    'no index, no id, the same tool again': [
      streamed(piece(fn('Read', '{"p":1}')), piece(fn('Read', '{"p":2}')), finished),
      calls(['call_1', 'Read', '{"p":1}'], ['call_2', 'Read', '{"p":2}']),
    ],
    'no index, no id, both in one chunk': [
      streamed(delta({ tool_calls: [fn('Read', '{"p":1}'), fn('Read', '{"p":2}')] }), finished),
      calls(['call_1', 'Read', '{"p":1}'], ['call_2', 'Read', '{"p":2}']),
    ],
    'no index, no id, the name on every piece': [
      streamed(piece(fn('Read', '')), piece(fn('Read', '{"p"')), piece(fn('Read', ':1}')), finished),
      calls(['call_1', 'Read', '{"p":1}']),
    ],
    'no id': [
      streamed(piece({ index: 0, ...fn('Read', '') }), piece({ index: 0, ...fn(undefined, '{"p":1}') }), finished),
      calls(['call_1', 'Read', '{"p":1}']),
    ],
    'an empty id later': [
      streamed(
        piece({ index: 0, id: 'a', ...fn('Read', '') }),
        piece({ index: 0, id: '', ...fn('', '{"p":1}') }),
        finished,
      ),
      one,
    ],
    'an id that comes late': [
      streamed(
        piece({ index: 0, ...fn('Read', '{"p"') }),
        piece({ index: 0, id: 'a', ...fn(undefined, ':1}') }),
        finished,
      ),
      calls(['call_1', 'Read', '{"p":1}']),
    ],
    'the id repeated': [
      streamed(
        piece({ index: 0, id: 'a', ...fn('Read', '{"p"') }),
        piece({ index: 0, id: 'a', ...fn(undefined, ':1}') }),
        finished,
      ),
      one,
    ],
    'id and name repeated': [
      streamed(
        piece({ index: 0, id: 'a', ...fn('Read', '{"p"') }),
        piece({ index: 0, id: 'a', ...fn('Read', ':1}') }),
        finished,
      ),
      one,
    ],
    'the name repeated': [
      streamed(piece({ index: 0, ...fn('Read', '{"p"') }), piece({ index: 0, ...fn('Read', ':1}') }), finished),
      calls(['call_1', 'Read', '{"p":1}']),
    ],
    'a new id on every piece': [
      streamed(
        piece({ index: 0, id: 'a', ...fn('Read', '{"p"') }),
        piece({ index: 0, id: 'x', ...fn(undefined, ':1}') }),
        finished,
      ),
      one,
    ],
    'one index for two calls': [
      streamed(
        piece({ index: 0, id: 'a', ...fn('Read', '{"p":1}') }),
        piece({ index: 0, id: 'b', ...fn('Find', '{"q"') }),
        piece({ index: 0, ...fn(undefined, ':2}') }),
        finished,
      ),
      two,
    ],
    'one index for two calls without ids': [
      streamed(piece({ index: 0, ...fn('Read', '{"p":1}') }), piece({ index: 0, ...fn('Find', '{"q":2}') }), finished),
      calls(['call_1', 'Read', '{"p":1}'], ['call_2', 'Find', '{"q":2}']),
    ],
    'one index for the same tool twice, without ids': [
      streamed(piece({ index: 0, ...fn('Read', '{"p":1}') }), piece({ index: 0, ...fn('Read', '{"p":2}') }), finished),
      calls(['call_1', 'Read', '{"p":1}'], ['call_2', 'Read', '{"p":2}']),
    ],
    'one id for two calls': [
      streamed(
        piece({ index: 0, id: 'a', ...fn('Read', '{"p":1}') }),
        piece({ index: 1, id: 'a', ...fn('Find', '{"q":2}') }),
        finished,
      ),
      calls(['a', 'Read', '{"p":1}'], ['call_2', 'Find', '{"q":2}']),
    ],
    'indexes that begin at one': [streamed(piece({ index: 1, id: 'a', ...fn('Read', '{"p":1}') }), finished), one],
    'a name in two pieces': [
      streamed(piece({ index: 0, id: 'a', ...fn('Re', '') }), piece({ index: 0, ...fn('ad', '{"p":1}') }), finished),
      one,
    ],
    'arguments as an object': [streamed(piece({ index: 0, id: 'a', ...fn('Read', { p: 1 }) }), finished), one],
    'arguments as an object, twice': [
      streamed(
        piece({ index: 0, id: 'a', ...fn('Read', { p: 1 }) }),
        piece({ index: 0, id: 'a', ...fn('Read', { p: 1 }) }),
        finished,
      ),
      one,
    ],
    'null arguments': [
      streamed(
        piece({ index: 0, id: 'a', ...fn('Read', null) }),
        piece({ index: 0, ...fn(undefined, '{"p":1}') }),
        finished,
      ),
      one,
    ],
    'no arguments': [
      streamed(piece({ index: 0, id: 'a', function: { name: 'Read' } }), finished),
      calls(['a', 'Read', '{}']),
    ],
    'broken arguments': [
      streamed(piece({ index: 0, id: 'a', ...fn('Read', '{"p"') }), finished),
      calls(['a', 'Read', '{"p"']),
    ],
    'a number as id': [
      streamed(piece({ index: 0, id: 7, ...fn('Read', '{"p":1}') }), finished),
      calls(['7', 'Read', '{"p":1}']),
    ],
    'no name': [
      streamed(piece({ index: 0, id: 'a', ...fn(undefined, '{"p":1}') }), finished),
      calls(['a', 'unknown', '{"p":1}']),
    ],
    'no function around it': [
      streamed(piece({ index: 0, id: 'a', name: 'Read', arguments: '{"p":1}' }), finished),
      one,
    ],
    'the interface of old': [
      streamed(
        delta({ function_call: { name: 'Read', arguments: '{"p"' } }),
        delta({ function_call: { arguments: ':1}' } }),
        delta({}, 'function_call'),
      ),
      calls(['call_1', 'Read', '{"p":1}']),
    ],
    'entries that are none': [streamed(delta({ tool_calls: [null, 'x', {}] }), word, stop), isHi],
    'cut off by the length': [
      streamed(piece({ index: 0, id: 'a', ...fn('Read', '{"p"') }), delta({}, 'length')),
      { ...calls(['a', 'Read', '{"p"']), finish: 'length' },
    ],
  });
});

t.test('ids are new in the whole conversation', async (t) => {
  const request: ModelRequest = {
    messages: [
      ...hi.messages,
      { role: 'assistant', text: '', toolCalls: [{ callId: 'call_0', name: 'Read', arguments: '{}' }] },
      { role: 'tool', callId: 'call_0', name: 'Read', content: [] },
    ],
  };
  const script = streamed(
    piece({ index: 0, id: 'call_0', ...fn('Read', '{}') }),
    piece({ index: 1, ...fn('Read', '{}') }),
  );
  t.same(
    told(await ask(t, script, request)).calls.map(({ callId }) => callId),
    ['call_2', 'call_3'],
  );
});

t.test('documents', async (t) => {
  const choice = (message: object, more: object = { finish_reason: 'stop' }) => ({ choices: [{ message, ...more }] });
  await holds(t, {
    'although a stream was asked for': [
      json(200, { ...choice({ content: 'hi' }), usage }),
      { ...isHi, usage: counted },
    ],
    'nothing but text': [json(200, choice({ content: 'hi' }, {})), isHi],
    'lines before it, as signs of life': [
      [
        head({ 'content-type': 'application/json' }),
        write('\n'),
        write('\n\n'),
        write(JSON.stringify(choice({ content: 'hi' }))),
      ],
      isHi,
    ],
    'in two pieces': [
      [
        head({}),
        write(JSON.stringify(choice({ content: 'hi' })).slice(0, 20)),
        write(JSON.stringify(choice({ content: 'hi' })).slice(20)),
      ],
      isHi,
    ],
    'content in parts': [json(200, choice({ content: [{ type: 'text', text: 'hi' }] })), isHi],
    'no content': [json(200, choice({})), { text: '', finish: 'stop' }],
    'a null finish': [json(200, choice({ content: 'hi' }, { finish_reason: null })), isHi],
    'usage as strings': [
      json(200, { ...choice({ content: 'hi' }), usage: { prompt_tokens: '3', completion_tokens: '4' } }),
      { usage: counted },
    ],
    'calls without id or index': [
      json(200, choice({ content: null, tool_calls: [fn('Read', '{"p":1}'), fn('Read', { p: 2 })] })),
      calls(['call_1', 'Read', '{"p":1}'], ['call_2', 'Read', '{"p":2}']),
    ],
    'calls that share an index': [
      json(
        200,
        choice({
          tool_calls: [
            { index: 0, id: 'a', ...fn('Read', '{"p":1}') },
            { index: 0, id: 'b', ...fn('Find', '{"q":2}') },
          ],
        }),
      ),
      calls(['a', 'Read', '{"p":1}'], ['b', 'Find', '{"q":2}']),
    ],
  });
});

t.test('what is no answer is an error, and says which', async (t) => {
  const closing = head({ connection: 'close', 'transfer-encoding': 'identity' });
  const cases: Readonly<Record<string, readonly [Script, object]>> = {
    garbage: [bytes('data: {"cho\n\n'), { code: 'upstreamProtocol', message: /no chat completion/ }],
    'a page': [[head({ 'content-type': 'text/html' }), write('<html>Sign in</html>')], { code: 'upstreamProtocol' }],
    nothing: [[head({})], { code: 'upstreamProtocol' }],
    'only [DONE]': [streamed(), { code: 'upstreamProtocol' }],
    'choices of the wrong type': [streamed({ choices: 'no' }), { code: 'upstreamProtocol' }],
    'choices that are none': [streamed({ choices: [7] }), { code: 'upstreamProtocol' }],
    'a chunk that is no object': [bytes('data: 7\n\n'), { code: 'upstreamProtocol' }],
    'no choices in a document': [json(200, { id: 'x', choices: [] }), { code: 'upstreamProtocol' }],
    'a broken document': [[head({}), write('{"choices": [')], { code: 'upstreamProtocol' }],
    'cut in the middle': [bytes(event(word), cut), { code: 'upstreamProtocol', message: /broke off/ }],
    'cut in an event': [bytes(event(word), 'data: {"choi'), { code: 'upstreamProtocol', message: /broke off/ }],
    'ended in the middle of a call': [
      bytes(event(piece({ index: 0, id: 'a', ...fn('Read', '{"p"') }))),
      { code: 'upstreamProtocol', message: /broke off/ },
    ],
    'closed without a word of its end': [
      [closing, ...bytes(event(word)).slice(1)],
      { code: 'upstreamProtocol', message: /broke off/ },
    ],
    'an error object': [
      streamed(word, { error: { message: 'overloaded', type: 'server_error' } }),
      { code: 'upstreamFailed', message: /overloaded/ },
    ],
    'an error text': [streamed(word, { error: 'overloaded' }), { code: 'upstreamFailed', message: /overloaded/ }],
    'an error event': [
      bytes(event(word), `event: error\n${event({ error: { message: 'overloaded' } })}`),
      { code: 'upstreamFailed' },
    ],
    'an error beside a choice': [
      streamed(word, { ...delta({ content: '' }, 'error'), error: { code: 502, message: 'provider gone' } }),
      { code: 'upstreamFailed', message: /provider gone/ },
    ],
    'an error in a choice': [
      streamed(word, { choices: [{ delta: {}, finish_reason: 'error', error: { code: 429, message: 'slow' } }] }),
      { code: 'upstreamRateLimited' },
    ],
    'a finish that says error': [streamed(word, delta({}, 'error')), { code: 'upstreamFailed' }],
    'an error of another kind': [
      streamed({ object: 'error', message: 'bad', code: 400 }),
      { code: 'upstreamRejected', message: /bad/ },
    ],
    'a typed error': [
      streamed({ type: 'error', error: { type: 'authentication_error', message: 'no' } }),
      { code: 'upstreamUnauthorized' },
    ],
    'an error with status 200': [
      json(200, { error: { message: 'rate', code: 'rate_limit_exceeded' } }),
      { code: 'upstreamRateLimited' },
    ],
    'a context that is too long, in the stream': [
      streamed({ error: { message: 'too much', code: 'context_length_exceeded' } }),
      { code: 'contextTooLong' },
    ],
    'an event without end': [bytes(`data: ${'x'.repeat(5 * 1_048_576)}`), { code: 'upstreamProtocol' }],
  };
  for (const [name, [script, expected]] of Object.entries(cases)) {
    t.match(await rejection(ask(t, script)), { name: 'ModelError', ...expected }, name);
  }
});

t.test('any cut of the bytes gives the same events', async (t) => {
  const stream = [
    ': hello\r\n\r\n',
    event(delta({ role: 'assistant', content: '' })),
    event(delta({ reasoning_content: 'äö' })).replaceAll('\n', '\r\n'),
    event(delta({ content: 'Grüß 🎼 dich' })),
    event(piece({ index: 0, id: 'a', ...fn('Read', '{"p"') })),
    event(piece({ index: 0, ...fn(undefined, ':"ß🎼"}') })),
    event(delta({}, 'tool_calls')),
    event({ choices: [], usage }),
    done,
  ].join('');
  const all = Buffer.from(stream);
  const read = (pieces: readonly Buffer[]) => {
    const events: ModelEvent[] = [];
    const emit = (told: ModelEvent) => events.push(told);
    const answer = new ChatAnswer({ emit, inputTokens: () => 0, takenIds: () => new Set(), clean: (text) => text });
    const body = new AnswerBody(answer);
    for (const bytes of pieces) body.push(bytes);
    body.end(true);
    return JSON.stringify(events);
  };
  const whole = read([all]);
  t.match(whole, /Grüß 🎼 dich/);
  fc.assert(
    fc.property(fc.array(fc.nat({ max: all.length }), { maxLength: 40 }), (cuts) => {
      const ends = [...cuts, all.length].sort((a, b) => a - b);
      return read(ends.map((end, index) => all.subarray(ends[index - 1] ?? 0, end))) === whole;
    }),
    { numRuns: 500 },
  );
});

t.test('chunks that are alike are read like any other', async (t) => {
  const text = fc.oneof(
    fc.string({ unit: 'grapheme', maxLength: 12 }),
    fc.constantFrom('"', '\\', '"}}]}', '\n', 'hi', 'hi'),
  );
  const said = fc.record({ key: fc.constantFrom('content', 'content', 'reasoning_content', 'reasoning'), text });
  const more = fc.constantFrom(
    {},
    {},
    { finish_reason: 'length' },
    { content: 'x' },
    { tool_calls: [{ ...fn('T', '{}') }] },
  );
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(fc.array(fc.tuple(said, more), { maxLength: 25 }), (chunks) => {
        const events: ModelEvent[] = [];
        const emit = (told: ModelEvent) => events.push(told);
        const answer = new ChatAnswer({
          emit,
          inputTokens: () => 0,
          takenIds: () => new Set(),
          clean: (words) => words,
        });
        const body = new AnswerBody(answer);
        const words = { text: '', thinking: '' };
        let calls = 0;
        for (const [{ key, text }, { finish_reason = null, ...others }] of chunks as readonly (readonly [
          { key: string; text: string },
          { finish_reason?: string; content?: string; tool_calls?: unknown[] },
        ])[]) {
          const said: Readonly<Record<string, unknown>> = { role: 'assistant', content: '', [key]: text, ...others };
          body.push(Buffer.from(event(delta(said, finish_reason))));
          words.text += said['content'];
          words.thinking += said['reasoning_content'] || said['reasoning'] || '';
          calls += others.tool_calls ? 1 : 0;
        }
        if (chunks.length === 0) return true;
        body.push(Buffer.from(done));
        body.end(true);
        const heard = told(events);
        const reason = chunks.some(([, { finish_reason }]) => finish_reason === 'length')
          ? 'length'
          : calls > 0
            ? 'toolCalls'
            : 'stop';
        return (
          heard.text === words.text &&
          heard.thinking === words.thinking &&
          heard.finish === reason &&
          heard.calls.length === calls
        );
      }),
      { numRuns: 1000 },
    ),
  );
});

t.test('no bytes bring it down: it answers or throws a typed error', async (t) => {
  const soup = fc.array(
    fc.oneof(
      fc.uint8Array({ maxLength: 40 }).map((raw) => Buffer.from(raw)),
      fc.jsonValue().map((value) => Buffer.from(`data: ${JSON.stringify(value)}\n\n`)),
      fc
        .jsonValue()
        .map((value) => Buffer.from(event({ choices: [{ delta: value, finish_reason: value }], usage: value }))),
      fc
        .jsonValue()
        .map((value) =>
          Buffer.from(
            event(delta({ content: value, reasoning_details: value, tool_calls: [value, { function: value }] })),
          ),
        ),
      fc.constant(Buffer.from(done)),
    ),
    { maxLength: 12 },
  );
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(soup, fc.boolean(), (pieces, isMarked) => {
        const events: ModelEvent[] = [];
        const emit = (told: ModelEvent) => events.push(told);
        const body = new AnswerBody(
          new ChatAnswer({ emit, inputTokens: () => 0, takenIds: () => new Set(), clean: (text) => text }),
        );
        try {
          for (const bytes of pieces) body.push(bytes);
          body.end(isMarked);
          return events.at(-1)?.type === 'finish';
        } catch (error) {
          return error instanceof Error && ['ModelError', 'UpstreamFault'].includes(error.name);
        }
      }),
      { numRuns: 1000 },
    ),
  );
});
