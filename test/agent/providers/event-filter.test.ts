import fc from 'fast-check';
import t from 'tap';
import { EventFilter } from '../../../src/agent/providers/sdk/event-filter.ts';

const known = new Set(['a', 'b']);
const decoded = (pieces: readonly Uint8Array[]): string => Buffer.concat(pieces).toString();

function filtered(stream: Buffer, cuts: readonly number[]): string {
  const filter = new EventFilter(known);
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

t.test('property: where the stream is cut changes nothing', async (t) => {
  const event = fc.record({ type: fc.constantFrom('a', 'b', 'new', ''), data: fc.string({ unit: 'grapheme' }) });
  const property = fc.property(fc.array(event), fc.array(fc.nat(2_000)), (events, cuts) => {
    const text = events.map(({ type, data }) => `event: ${type}\ndata: ${JSON.stringify(data)}\n\n`).join('');
    const stream = Buffer.from(text);
    return filtered(stream, cuts) === filtered(stream, []);
  });
  fc.assert(property);
  t.end();
});

t.test('an event without an end does not grow without bounds', async (t) => {
  const filter = new EventFilter(known);
  const chunk = Buffer.from('x'.repeat(1_048_576));
  let passed = 0;
  for (let number = 0; number < 10; number += 1) passed += filter.push(chunk).length;
  t.ok(passed >= 5 * 1_048_576, `${passed} bytes have passed`);
});
