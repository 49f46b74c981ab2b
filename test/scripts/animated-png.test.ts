/** The encoder of the tour, and the tour as README shows it. */
import { readFileSync } from 'node:fs';
import { deflateSync, inflateSync } from 'node:zlib';
import t from 'tap';
import { animatedPng } from '../../scripts/animated-png.ts';
import { chunk, signature } from '../../scripts/png.ts';

/** A picture as a browser writes it: RGB rows without a filter. */
function png(
  width: number,
  height: number,
  colourOf: (x: number, y: number) => readonly [number, number, number],
): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 2, 0, 0, 0], 8);
  const rows = Array.from({ length: height }, (_, y) => [
    0,
    ...Array.from({ length: width }, (_, x) => colourOf(x, y)).flat(),
  ]);
  const data = chunk('IDAT', deflateSync(Buffer.from(rows.flat())));
  return Buffer.concat([signature, chunk('IHDR', header), data, chunk('IEND', Buffer.alloc(0))]);
}

interface Chunk {
  readonly type: string;
  readonly body: Buffer;
}

function chunksOf(file: Buffer): Chunk[] {
  t.ok(file.subarray(0, 8).equals(signature));
  const chunks: Chunk[] = [];
  for (let at = 8; at < file.length; ) {
    const length = file.readUInt32BE(at);
    chunks.push({ type: file.toString('latin1', at + 4, at + 8), body: file.subarray(at + 8, at + 8 + length) });
    at += length + 12;
  }
  return chunks;
}

const controls = (chunks: readonly Chunk[]) =>
  chunks.flatMap(({ type, body }) =>
    type !== 'fcTL'
      ? []
      : [
          {
            region: [4, 8, 12, 16].map((at) => body.readUInt32BE(at)),
            ms: (body.readUInt16BE(20) * 1_000) / body.readUInt16BE(22),
          },
        ],
  );

const white = [255, 255, 255] as const;
const red = [200, 0, 0] as const;

t.test('each frame holds only the changed region, numbered in order', async (t) => {
  const spot = (x: number, y: number) => png(8, 6, (column, row) => (column === x && row === y ? red : white));
  const file = animatedPng([
    { png: spot(1, 1), milliseconds: 2_000 },
    { png: spot(3, 2), milliseconds: 500 },
    { png: spot(3, 2), milliseconds: 1_500 },
  ]);
  const chunks = chunksOf(file);
  t.strictSame(
    chunks.map(({ type }) => type),
    ['IHDR', 'acTL', 'PLTE', 'tRNS', 'fcTL', 'IDAT', 'fcTL', 'fdAT', 'fcTL', 'fdAT', 'IEND'],
  );
  t.strictSame(controls(chunks), [
    { region: [8, 6, 0, 0], ms: 2_000 },
    { region: [3, 2, 1, 1], ms: 500 },
    { region: [1, 1, 0, 0], ms: 1_500 },
  ]);
  const numbers = chunks.filter(({ type }) => /^f[cd]/.test(type)).map(({ body }) => body.readUInt32BE(0));
  t.strictSame(numbers, [0, 1, 2, 3, 4], 'one sequence for controls and data');
  const [second] = chunks.filter(({ type }) => type === 'fdAT');
  const rows = inflateSync(second?.body.subarray(4) ?? Buffer.alloc(0));
  t.equal(rows.length, (3 + 1) * 2);
  t.equal([...rows].filter((index) => index === 255).length, 4, 'pixels that stay are transparent');
});

t.test('frames of different sizes, and none, are refused', async (t) => {
  const plain = (width: number) => ({ png: png(width, 2, () => white), milliseconds: 1 });
  t.throws(() => animatedPng([plain(2), plain(3)]), /differ in size/);
  t.throws(() => animatedPng([]), /at least one/);
});

t.test('the tour takes about two minutes and less than 3 MB, and is shown', async (t) => {
  const file = readFileSync('docs/images/tour.png');
  t.ok(file.length < 3_000_000, `${file.length} bytes`);
  const seconds = controls(chunksOf(file)).reduce((sum, { ms }) => sum + ms, 0) / 1_000;
  t.ok(seconds > 100 && seconds < 140, `${seconds} s`);
  for (const page of ['README.md', 'docs/dashboard.md'])
    t.match(readFileSync(page, 'utf8'), /!\[[^\]]{20,}\]\((?:docs\/)?images\/tour\.png\)/, page);
});
