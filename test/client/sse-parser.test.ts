import fc from 'fast-check';
import t from 'tap';
import { type SseMessage, SseParser } from '../../src/client/index.ts';

interface Outcome {
  readonly messages: SseMessage[];
  readonly retries: number[];
}

function parse(chunks: readonly string[]): Outcome {
  const messages: SseMessage[] = [];
  const retries: number[] = [];
  const parser = new SseParser({ onMessage: (message) => messages.push(message), onRetry: (ms) => retries.push(ms) });
  for (const chunk of chunks) parser.push(chunk);
  return { messages, retries };
}

/** The standard's algorithm over a whole stream at once (WHATWG HTML, section 9.2.6). */
function reference(stream: string): Outcome {
  const messages: SseMessage[] = [];
  const retries: number[] = [];
  let [event, data, lastEventId] = ['', '', ''];
  const lines = stream.replace(/^\uFEFF/, '').split(/\r\n|\r|\n/);
  lines.pop();
  for (const line of lines) {
    const [, field = '', value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (line === '') {
      if (data !== '') messages.push({ event: event || 'message', data: data.slice(0, -1), lastEventId });
      [event, data] = ['', ''];
    } else if (field === 'event') event = value;
    else if (field === 'data') data += `${value}\n`;
    else if (field === 'id' && !value.includes('\0')) lastEventId = value;
    else if (field === 'retry' && /^[0-9]+$/.test(value)) retries.push(Number(value));
  }
  return { messages, retries };
}

t.test('an event of the Hub is parsed', async (t) => {
  const { messages, retries } = parse([
    ': connected\n\nretry: 2000\n\nid: a-1\nevent: hub.started\ndata: {"kind":"hub.started"}\n\n',
  ]);
  t.strictSame(messages, [{ event: 'hub.started', data: '{"kind":"hub.started"}', lastEventId: 'a-1' }]);
  t.strictSame(retries, [2000]);
});

t.test('corner cases of the standard are parsed', async (t) => {
  t.strictSame(parse(['data: a\ndata\ndata: b\n\n']).messages[0]?.data, 'a\n\nb', 'several lines, one without a colon');
  t.strictSame(parse(['data:  a\n\n']).messages[0]?.data, ' a', 'one space after the colon is not data');
  t.strictSame(parse(['id: 1\n\ndata: a\n\n']).messages[0]?.lastEventId, '1', 'an id without data counts');
  t.strictSame(parse(['id: 1\ndata: a\n\nid\ndata: b\n\n']).messages[1]?.lastEventId, '', 'an empty id resets');
  t.strictSame(parse(['id: 1\0\ndata: a\n\n']).messages[0]?.lastEventId, '', 'an id with NUL is ignored');
  t.strictSame(parse(['retry: 1x\nretry: -1\nretry:\n\n']).retries, [], 'only digits are a retry');
  t.strictSame(parse(['data: unfinished\n']).messages, [], 'the end of the stream dispatches nothing');
  t.strictSame(parse(['\uFEFFdata: a\n\n']).messages[0]?.data, 'a', 'one byte order mark');
  t.strictSame(parse(['\uFEFF\uFEFFdata: a\n\n']).messages, [], 'not two');
  t.strictSame(parse(['data: a\r', '\r\n', 'data: b\r\n', '\r\n']).messages.length, 2, 'CR, LF and CRLF, cut between');
});

t.test('any stream in any pieces is parsed as the standard requires', async (t) => {
  const piece = fc.oneof(
    fc.constantFrom(
      'data',
      'event',
      'id',
      'retry',
      ':',
      ': ',
      ' ',
      '\n',
      '\r',
      '\r\n',
      '\n\n',
      '12',
      '\0',
      '\uFEFF',
      'é',
      '😀',
    ),
    fc.string({ maxLength: 4 }),
  );
  const stream = fc.array(piece, { maxLength: 60 }).map((pieces) => pieces.join(''));
  fc.assert(
    fc.property(stream, fc.array(fc.nat(400), { maxLength: 12 }), (text, cuts) => {
      const places = [...cuts.map((cut) => cut % (text.length + 1)), 0, text.length].sort((a, b) => a - b);
      const chunks = places.slice(1).map((place, index) => text.slice(places[index], place));
      const [actual, expected] = [parse(chunks), reference(text)];
      return JSON.stringify(actual) === JSON.stringify(expected);
    }),
    { numRuns: 2_000 },
  );
  t.pass('2000 streams');
});

t.test('a CR at the end of a piece ends its line at once, and a LF after it ends no other', async (t) => {
  t.equal(parse(['data: a\r', '\r']).messages.length, 1, 'dispatched without waiting for the next piece');
  t.strictSame(parse(['data: a\r', '\ndata: b\r', '\n\r', '\n']).messages[0]?.data, 'a\nb');
});

const mebibyte = 1_048_576;

t.test('a line without an end is refused beyond 32 Mi characters', async (t) => {
  const parser = new SseParser({ onMessage: () => t.fail('dispatched') });
  parser.push('data: ');
  for (let count = 0; count < 31; count += 1) parser.push('x'.repeat(mebibyte));
  t.throws(() => parser.push('x'.repeat(mebibyte)), RangeError);
});

t.test('an event of many lines without an end is refused beyond 32 Mi characters', async (t) => {
  const parser = new SseParser({ onMessage: () => t.fail('dispatched') });
  const line = `data: ${'x'.repeat(mebibyte - 1)}\n`;
  for (let count = 0; count < 32; count += 1) parser.push(line);
  t.throws(() => parser.push(line), RangeError);
});
