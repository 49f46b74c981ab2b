import fc from 'fast-check';
import t from 'tap';
import { LineSplitter, type LineSplitterOptions } from '../../src/lib/index.ts';

type Options = Partial<Omit<LineSplitterOptions, 'onLine'>>;

/** Lines of chunks; those that were cut end with `…`. */
function linesOf(chunks: readonly (Buffer | string)[], options: Options = {}): string[] {
  const lines: string[] = [];
  const splitter = new LineSplitter({
    maxBytes: 1_000,
    longer: 'cut',
    ...options,
    onLine: (line, isCut) => lines.push(`${line}${isCut ? '…' : ''}`),
  });
  for (const chunk of chunks) splitter.add(Buffer.from(chunk));
  splitter.end();
  return lines;
}

/** Divides bytes into chunks of these sizes, the last one takes the rest. */
function divided(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const chunks: Buffer[] = [];
  let at = 0;
  for (const size of [...sizes, bytes.length]) {
    chunks.push(bytes.subarray(at, at + size));
    at += size;
  }
  return chunks;
}

t.test('lines do not depend on the chunks in which they arrive', async () => {
  const text = fc.array(fc.constantFrom('a', 'é', '😀', '\n', '\r', '\r\n', 'bc')).map((parts) => parts.join(''));
  fc.assert(
    fc.property(text, fc.array(fc.nat(5)), fc.boolean(), (source, sizes, endsAtReturn) => {
      const expected = source.split(endsAtReturn ? /\r\n|\n|\r/ : '\n');
      if (expected.at(-1) === '') expected.pop();
      const lines = linesOf(divided(Buffer.from(source), sizes), { endsAtReturn });
      return JSON.stringify(lines) === JSON.stringify(expected);
    }),
    { numRuns: 1_000 },
  );
});

t.test('a line that is too long is cut, or passed on in pieces, with any division into chunks', async () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ maxLength: 30 }).map((line) => line.replaceAll('\n', ' '))),
      fc.array(fc.nat(9)),
      fc.integer({ min: 1, max: 12 }),
      (lines, sizes, maxBytes) => {
        const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''), 'latin1');
        const chunks = divided(bytes, sizes);
        const own = lines.map((line) => Buffer.from(line, 'latin1'));
        const cut = own.map((line) => `${line.subarray(0, maxBytes)}${line.length > maxBytes ? '…' : ''}`);
        const isCut = JSON.stringify(linesOf(chunks, { maxBytes })) === JSON.stringify(cut);
        const pieces: Buffer[] = [];
        const splitter = new LineSplitter({ maxBytes, longer: 'split', onLine: (piece) => pieces.push(piece) });
        for (const chunk of chunks) splitter.add(chunk);
        splitter.end();
        const isWhole = Buffer.concat(pieces).equals(Buffer.concat(own));
        return isCut && isWhole && pieces.every((piece) => piece.length <= maxBytes);
      },
    ),
    { numRuns: 1_000 },
  );
});

t.test('a piece of a long line does not end inside a character', async (t) => {
  const text = 'é😀'.repeat(50);
  for (const maxBytes of [4, 5, 6, 7, 10]) {
    const pieces = linesOf(divided(Buffer.from(text), [3, 5, 20]), { maxBytes, longer: 'split' });
    t.equal(pieces.join(''), text, `${maxBytes} bytes`);
    t.ok(pieces.length > 20);
  }
});

t.test('the unfinished line is counted in full and stored within the limit', async (t) => {
  const splitter = new LineSplitter({ maxBytes: 10, longer: 'cut', onLine: () => {} });
  splitter.add(Buffer.from('one\n0123456789'));
  t.equal(splitter.unfinishedBytes, 10);
  splitter.add(Buffer.alloc(1_000_000));
  t.equal(splitter.unfinishedBytes, 1_000_010);
  splitter.add(Buffer.from('\n'));
  t.equal(splitter.unfinishedBytes, 0);
});

t.test('without any bytes there is no line', async (t) => {
  t.same(linesOf([]), []);
  t.same(linesOf(['', '']), []);
  t.same(linesOf(['\n\n']), ['', '']);
  t.same(linesOf(['a\r', '\nb'], { endsAtReturn: true }), ['a', 'b']);
  t.same(linesOf(['a\r', '', '\nb'], { endsAtReturn: true }), ['a', 'b']);
});
