import t from 'tap';
import { SseReader } from '../../src/http/sse.ts';

/** A connection that takes `room` bytes before it leaves some behind. */
class FakeReader extends SseReader {
  room = 0;
  written = '';
  finished = false;
  wasCut = false;

  protected write(piece: Uint8Array): boolean {
    this.written += Buffer.from(piece).toString();
    this.room -= piece.byteLength;
    return this.room >= 0;
  }

  protected finish(): void {
    this.finished = true;
  }

  protected cut(): void {
    this.wasCut = true;
  }
}

const frame = (text: string) => Buffer.from(text);

t.test('a drained connection without queued data gets a comment, which flushes its last bytes', async (t) => {
  const reader = new FakeReader();
  reader.push(frame('abc'), 10);
  t.ok(reader.blocked);
  reader.room = 100;
  reader.flush();
  t.equal(reader.written, 'abc:\n\n');
  t.notOk(reader.blocked);
});

t.test('data after a blocked write is queued up to the bound', async (t) => {
  const reader = new FakeReader();
  reader.push(frame('a'), 3);
  reader.push(frame('bb'), 3);
  reader.push(frame('c'), 3);
  t.equal(reader.written, 'a');
  t.notOk(reader.wasCut);
  reader.room = 100;
  reader.flush();
  t.equal(reader.written, 'abbc', 'joined into one write, in order');
  reader.room = 0;
  reader.push(frame('d'), 3);
  reader.push(frame('eeee'), 3);
  t.ok(reader.wasCut);
});

t.test('live batches count towards the bound of a reader, history does not', async (t) => {
  const reader = new FakeReader();
  const history = Array.from({ length: 10 }, () => frame('h'.repeat(50_000)));
  reader.begin(frame('p'), history);
  t.equal(reader.written.length, 50_001, 'one piece, then it waits');
  reader.push(frame('l'.repeat(100)), 100);
  t.notOk(reader.wasCut);
  reader.push(frame('l'), 100);
  t.ok(reader.wasCut);
  reader.room = 10_000_000;
  reader.flush();
  t.equal(reader.written, `p${'h'.repeat(500_000)}${'l'.repeat(101)}`);
});

t.test('the end follows queued data', async (t) => {
  const reader = new FakeReader();
  reader.push(frame('a'), 10);
  reader.push(frame('b'), 10);
  reader.end();
  t.notOk(reader.finished);
  reader.room = 10;
  reader.flush();
  t.equal(reader.written, 'ab');
  t.ok(reader.finished);
});
