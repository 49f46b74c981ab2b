import fc from 'fast-check';
import t from 'tap';
import { EventFilter, type EventRules } from '../../../src/agent/providers/sdk/event-filter.ts';

/** Pieces of text `b`, by the letter that they are of. */
const rules: EventRules = {
  known: new Set(['a', 'b']),
  pieces: new Set(['b']),
  pieceIn: ({ of, text }) => (typeof text === 'string' ? { of: String(of), text } : undefined),
  withText: (data, text) => ({ ...data, text }),
};
const decoded = (pieces: readonly Uint8Array[]): string => Buffer.concat(pieces).toString();

function filtered(stream: Buffer, cuts: readonly number[]): string {
  const filter = new EventFilter(rules);
  const places = [0, ...cuts.map((cut) => cut % (stream.length + 1)).sort((a, b) => a - b), stream.length];
  const pieces = places.slice(1).map((end, index) => filter.push(stream.subarray(places[index], end)));
  return decoded(pieces) + filter.end();
}

t.test('events of unknown types are removed, all others pass byte for byte', async (t) => {
  const stream =
    'event: a\ndata: {"x":"ä€😀"}\n\n: comment\n\nevent: new\ndata: 1\n\ndata: no type\n\nevent:b\r\ndata: 2\r\n\r\n';
  t.equal(filtered(Buffer.from(stream), []), stream.replace('event: new\ndata: 1\n\n', ''));
  t.equal(filtered(Buffer.from('event: new\ndata: cut off'), []), '');
  t.equal(filtered(Buffer.from('event: a\ndata: cut off'), []), 'event: a\ndata: cut off');
});

t.test('pieces of one text that arrive together become one event; others stay apart and in their order', async (t) => {
  const piece = (of: string, text: string, more = {}) => `event: b\ndata: ${JSON.stringify({ of, text, ...more })}\n\n`;
  const other = 'event: a\ndata: {"of":"x","text":"y"}\n\n';
  const stream = [
    piece('x', 'on', { n: 1 }),
    piece('x', 'e'),
    piece('y', 't'),
    other,
    piece('y', 'wo'),
    piece('y', '!'),
  ];
  t.equal(
    filtered(Buffer.from(stream.join('')), []),
    [piece('x', 'one', { n: 1 }), piece('y', 't'), other, piece('y', 'wo!')].join(''),
  );
  const odd = ['event: b\ndata: {"of":1}\n\n', 'event: b\ndata: {broken\n\n', 'event: b\ndata: 1\ndata: 2\n\n'].join(
    '',
  );
  t.equal(filtered(Buffer.from(odd), []), odd);
});

t.test('property: where the stream is cut changes nothing but how many pieces a text comes in', async (t) => {
  const event = fc.record({
    type: fc.constantFrom('a', 'b', 'new', ''),
    of: fc.constantFrom('x', 'y'),
    text: fc.string({ unit: 'grapheme' }),
  });
  /** Texts in their order, neighbours of one kind as one. */
  const texts = (stream: string): string[] => {
    const found: { kind: string; text: string }[] = [];
    for (const block of stream.split('\n\n').filter((each) => each !== '')) {
      const [head = '', data = ''] = block.split('\ndata: ');
      const { of, text } = JSON.parse(data);
      const kind = `${head} ${of}`;
      const last = found.at(-1);
      if (last?.kind === kind) last.text += text;
      else found.push({ kind, text });
    }
    return found.map(({ kind, text }) => `${kind}: ${text}`);
  };
  const property = fc.property(fc.array(event), fc.array(fc.nat(2_000)), (events, cuts) => {
    const text = events.map(({ type, ...data }) => `event: ${type}\ndata: ${JSON.stringify(data)}\n\n`).join('');
    const kept = events.filter(({ type }) => type !== 'new' && type !== '');
    const expected = kept.map(({ type, ...data }) => `event: ${type}\ndata: ${JSON.stringify(data)}\n\n`).join('');
    t.same(texts(filtered(Buffer.from(text), cuts)), texts(expected));
  });
  fc.assert(property);
});

t.test('an event without an end does not grow without bounds', async (t) => {
  const filter = new EventFilter(rules);
  const chunk = Buffer.from('x'.repeat(1_048_576));
  let passed = 0;
  for (let number = 0; number < 10; number += 1) passed += filter.push(chunk).length;
  t.ok(passed >= 5 * 1_048_576, `${passed} bytes have passed`);
});
