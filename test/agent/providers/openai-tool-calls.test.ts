/** Tool calls as upstreams really write them. */
import t from 'tap';
import type { ModelEvent, ModelRequest } from '../../../src/agent/model.ts';
import { ToolCallAssembly } from '../../../src/agent/providers/upstream/tool-calls.ts';
import { delta, event, streamed } from '../../fixtures/upstream/mock-upstream.ts';
import { answerOf, hi } from './helpers.ts';
import { ask, bytes, calls, finished, fn, holds, isHi, piece, stop, word } from './upstream-variants.ts';

t.test('streamed tool calls of every variant are read', async (t) => {
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
    'ids that a service may refuse': [
      streamed(
        piece({ index: 0, id: 'a\u0000\u202e', ...fn('Read', '{}') }),
        piece({ index: 1, id: 'b\n', ...fn('Read', '{}') }),
      ),
      calls(['call_1', 'Read', '{}'], ['call_2', 'Read', '{}']),
    ],
    'cut off by the length': [
      streamed(piece({ index: 0, id: 'a', ...fn('Read', '{"p"') }), delta({}, 'length')),
      { ...calls(['a', 'Read', '{"p"']), finish: 'length' },
    ],
  });
});

t.test('a repeated call id is replaced by one that is new in the conversation', async (t) => {
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
    answerOf(await ask(t, script, request)).calls.map(({ callId }) => callId),
    ['call_2', 'call_3'],
  );
});

t.test('50,000 calls, or pieces of one call, are put together in linear time', async (t) => {
  const forms: Readonly<Record<string, (at: number) => object>> = {
    'each with an index and an id': (at) => ({ index: at, id: `c${at}`, ...fn('Read', '{}') }),
    'without both': () => fn('Read', '{}'),
    'with one id': (at) => ({ index: at, id: 'same', ...fn('Read', '{}') }),
    'pieces that end like JSON': (at) => ({
      index: 0,
      ...fn('Read', at === 0 ? `{"a":"${'x'.repeat(3_000_000)}` : '}'),
    }),
  };
  for (const [form, entry] of Object.entries(forms)) {
    const events: ModelEvent[] = [];
    const taken = new Set(Array.from({ length: 10_000 }, (_, at) => `call_${at}`));
    const assembly = new ToolCallAssembly(
      (each) => events.push(each),
      () => new Set(taken),
    );
    const begun = performance.now();
    assembly.add(
      Array.from({ length: 50_000 }, (_, at) => entry(at)),
      false,
    );
    assembly.end();
    t.ok(performance.now() - begun < 60_000, form);
    const ids = events.flatMap((each) => (each.type === 'toolCall' ? [each.call.callId] : []));
    t.equal(new Set(ids).size, form.startsWith('pieces') ? 1 : 50_000, form);
  }
});
