/** The page's reader of event streams: pieces of text in, events out. */
import fc from 'fast-check';
import t from 'tap';
import { SseParser, type StreamEvent } from '../../src/ui/app/stream.ts';

const parse = (pieces: readonly string[]): StreamEvent[] => {
  const parser = new SseParser();
  return pieces.flatMap((piece) => parser.push(piece));
};

t.test('an event has id, name and data; a missing id is empty, a missing name “message”', async (t) => {
  t.strictSame(parse(['id: 7\nevent: ready\ndata: {}\n\n', ':\n\n', 'data: a\ndata: b\n\n']), [
    { id: '7', event: 'ready', data: '{}' },
    { id: '', event: 'message', data: 'a\nb' },
  ]);
});

t.test('a CRLF divided between two pieces ends one line', async (t) => {
  t.strictSame(parse(['data: a\r', '\ndata: b\r', '\n\r', '\n']), [{ id: '', event: 'message', data: 'a\nb' }]);
});

t.test('the parsed events do not depend on line ends and pieces', async () => {
  const lineEnd = fc.constantFrom('\n', '\r', '\r\n');
  fc.assert(
    fc.property(lineEnd, fc.array(fc.json(), { maxLength: 8 }), fc.array(fc.nat(400)), (end, documents, cuts) => {
      const text = documents
        .map((data, id) => [`id: ${id + 1}`, 'event: news', `data: ${data}`, '', ''].join(end))
        .join('');
      const places = [0, ...cuts.map((cut) => cut % (text.length + 1)), text.length].sort((a, b) => a - b);
      const pieces = places.slice(1).map((place, index) => text.slice(places[index], place));
      const expected = documents.map((data, id) => ({ id: String(id + 1), event: 'news', data }));
      return JSON.stringify(parse(pieces)) === JSON.stringify(expected);
    }),
  );
});

t.test('an event beyond 32 Mi characters is refused', async (t) => {
  const parser = new SseParser();
  parser.push('data: ');
  const piece = 'x'.repeat(1_048_576);
  for (let count = 0; count < 31; count += 1) parser.push(piece);
  t.throws(() => parser.push(piece), RangeError);
});
