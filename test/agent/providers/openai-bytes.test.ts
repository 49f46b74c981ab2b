/** Any bytes at all, in any pieces. */
import fc from 'fast-check';
import t from 'tap';
import type { ModelEvent } from '../../../src/agent/model.ts';
import { AnswerBody } from '../../../src/agent/providers/upstream/answer-body.ts';
import { ChatAnswer } from '../../../src/agent/providers/upstream/chat-answer.ts';
import { delta, done, event } from '../../fixtures/upstream/mock-upstream.ts';
import { answerOf } from './helpers.ts';
import { fn, piece, usage } from './upstream-variants.ts';

t.test('any split of the bytes gives the same events', async (t) => {
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
    const emit = (event: ModelEvent) => events.push(event);
    const answer = new ChatAnswer({
      emit,
      owner: 'openai-compatible/m',
      inputTokens: () => 0,
      takenIds: () => new Set(),
      clean: (text) => text,
    });
    const body = new AnswerBody(answer);
    for (const bytes of pieces) body.push(bytes);
    body.end(true, false);
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

t.test('similar chunks are read like any other', async (t) => {
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
        const emit = (event: ModelEvent) => events.push(event);
        const answer = new ChatAnswer({
          emit,
          owner: 'openai-compatible/m',
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
        body.end(true, false);
        const heard = answerOf(events);
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

t.test('arbitrary bytes yield an answer or a typed error', async (t) => {
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
        const emit = (event: ModelEvent) => events.push(event);
        const body = new AnswerBody(
          new ChatAnswer({
            emit,
            owner: 'openai-compatible/m',
            inputTokens: () => 0,
            takenIds: () => new Set(),
            clean: (text) => text,
          }),
        );
        try {
          for (const bytes of pieces) body.push(bytes);
          body.end(isMarked, false);
          return events.at(-1)?.type === 'finish';
        } catch (error) {
          return error instanceof Error && ['ModelError', 'UpstreamFault'].includes(error.name);
        }
      }),
      { numRuns: 1000 },
    ),
  );
});
