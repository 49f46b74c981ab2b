import fc from 'fast-check';
import t from 'tap';
import { SseLines } from '../../../src/agent/providers/upstream/sse-lines.ts';

/** `bytes` in pieces that end at these places. */
function inPieces(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const ends = [...cuts.map((at) => at % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
  return ends.map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end));
}

function read(bytes: Buffer, cuts: readonly number[] = []): string[] {
  const found: string[] = [];
  const lines = new SseLines((data) => found.push(data));
  for (const piece of inPieces(bytes, cuts)) lines.push(piece);
  lines.end();
  return found;
}

t.test('any split of the bytes gives the same lines', async (t) => {
  const stream =
    '\uFEFF: connected\r\n\r\ndata: eins\n\nevent: x\rdata:zwei\rdata:  drei €\r\rid: 1\r\n\r\ndatum: x\n\n' +
    'data: 🎼\r\n\r\ndata: {"a":1}\n\ndata:\n\ndata: unfinished';
  const bytes = Buffer.from(stream);
  const expected = ['eins', 'zwei\n drei €', '🎼', '{"a":1}', '', 'unfinished'];
  t.same(read(bytes), expected);
  fc.assert(
    fc.property(
      fc.array(fc.nat(), { maxLength: 30 }),
      (cuts) => JSON.stringify(read(bytes, cuts)) === JSON.stringify(expected),
    ),
  );
  t.same(read(bytes, Array.from(bytes.keys())), expected, 'byte by byte');
});

t.test('every event arrives, for all line ends and splits', async (t) => {
  const line = fc
    .string({ unit: 'grapheme', maxLength: 40 })
    .map((text) => text.replace(/[\r\n]/g, '').replace(/^\uFEFF/, ''));
  const lineEnd = fc.constantFrom('\n', '\r\n', '\r');
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(
        fc.array(fc.array(line, { minLength: 1, maxLength: 3 }), { maxLength: 8 }),
        lineEnd,
        fc.array(fc.nat()),
        (events, end, cuts) => {
          const text = events.map((lines) => lines.map((data) => `data: ${data}${end}`).join('') + end).join('');
          return (
            JSON.stringify(read(Buffer.from(text), cuts)) === JSON.stringify(events.map((lines) => lines.join('\n')))
          );
        },
      ),
      { numRuns: 300 },
    ),
  );
});

t.test('an event is delivered by the chunk that completes it', async (t) => {
  const found: string[] = [];
  const lines = new SseLines((data) => found.push(data));
  lines.push(Buffer.from('data: a\n\ndata: b\n'));
  t.same(found, ['a']);
  lines.push(Buffer.from('\n'));
  t.same(found, ['a', 'b']);
});

t.test('an event above the size limit is refused, in one line or many', async (t) => {
  const endless = (chunk: Buffer) => () => {
    const lines = new SseLines(() => t.fail('there is no event'));
    for (let sent = 0; sent < 5 * 1_048_576; sent += chunk.length) lines.push(chunk);
  };
  const refusal = { name: 'ModelError', code: 'upstreamProtocol' };
  t.throws(endless(Buffer.alloc(65_536, 'x')), refusal);
  t.throws(endless(Buffer.from(`data: ${'x'.repeat(65_000)}\n`)), refusal);
  t.throws(endless(Buffer.alloc(1024, 'x')), refusal);
});
