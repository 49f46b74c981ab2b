/** Real upstreams: every known deviation from the interface, and its result. */
import t from 'tap';
import { cut, delta, done, event, json, type Script, streamed, write } from '../../fixtures/upstream/mock-upstream.ts';
import { rejection } from './helpers.ts';
import {
  ask,
  bytes,
  calls,
  counted,
  type Expected,
  fn,
  head,
  holds,
  isHi,
  piece,
  stop,
  usage,
  word,
} from './upstream-variants.ts';

t.test('streams of every framing are read', async (t) => {
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

t.test('chunks of every variant are read', async (t) => {
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
    'a refusal': [streamed(delta({ refusal: 'hi' }), stop), { ...isHi, finish: 'contentFilter' }],
    'a whole message in a stream': [
      streamed({ choices: [{ message: { content: 'hi' }, finish_reason: 'stop' }] }),
      isHi,
    ],
    length: [streamed(word, delta({}, 'length')), { finish: 'length' }],
    max_tokens: [streamed(word, delta({}, 'MAX_TOKENS')), { finish: 'length' }],
    content_filter: [streamed(word, delta({}, 'content_filter')), { finish: 'contentFilter' }],
    'tool_calls without calls': [streamed(word, delta({}, 'tool_calls')), { text: 'hi', finish: 'toolCalls' }],
    'a second choice between the pieces of the first': [
      streamed(
        {
          choices: [
            { index: 1, delta: { content: 'other' } },
            { index: 0, delta: { content: 'h' } },
          ],
        },
        { choices: [{ index: 1, delta: { content: 'more' } }] },
        { choices: [{ index: 1, delta: { content: 'more of it' } }] },
        { choices: [{ index: 1, delta: { tool_calls: [{ id: 'c', function: { name: 'Exec', arguments: '{}' } }] } }] },
        { choices: [{ index: 1, delta: {}, finish_reason: 'tool_calls' }] },
        { choices: [{ index: 0, delta: { content: 'i' }, finish_reason: 'stop' }] },
      ),
      isHi,
    ],
    'one choice with another index': [
      streamed({ choices: [{ index: 1, delta: { content: 'hi' }, finish_reason: 'stop' }] }),
      isHi,
    ],
    'nothing to say': [streamed(delta({ content: '' }), stop), { text: '', finish: 'stop' }],
  });
});

t.test('reasoning is read once, under each of its names', async (t) => {
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

t.test('usage of every variant is read', async (t) => {
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

t.test(
  'regression: counts and a cost that no service can have counted are estimated, so that they use up no budget',
  async (t) => {
    const guessed = { type: 'usage' as const, isEstimated: true, outputTokens: 1, costUsd: undefined };
    const withUsage = (text: string) =>
      bytes(event(word), event(stop), `data: {"choices":[],"usage":${text}}\n\n${done}`);
    await holds(t, {
      huge: [
        withUsage('{"prompt_tokens":1e300,"completion_tokens":9007199254740993,"cost":1e300}'),
        { usage: guessed },
      ],
      infinite: [withUsage('{"prompt_tokens":1e999,"completion_tokens":1e999,"cost":1e999}'), { usage: guessed }],
      negative: [withUsage('{"prompt_tokens":-1,"completion_tokens":-1,"cost":-1}'), { usage: guessed }],
      ordinary: [
        withUsage('{"prompt_tokens":3,"completion_tokens":4,"cost":0.5}'),
        { usage: { ...counted, costUsd: 0.5 } },
      ],
    });
  },
);

t.test('answers without streaming are read', async (t) => {
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

t.test('an invalid answer is a typed error that names the fault', async (t) => {
  const closing = head({ connection: 'close', 'transfer-encoding': 'identity' });
  const cases: Readonly<Record<string, readonly [Script, object]>> = {
    garbage: [bytes('data: {"cho\n\n'), { code: 'upstreamProtocol', message: /not a chat completion/ }],
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
