/** Small PNGs of screenshots: as many colours as a palette holds, chosen by median cut, without dithering. */
import { crc32, deflateSync, inflateSync } from 'node:zlib';

export const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
/** Colours of a palette. */
export const maxColours = 256;

export interface Image {
  readonly width: number;
  readonly height: number;
  /** Red, green, blue of each pixel, row by row. */
  readonly pixels: Uint8Array;
}

/** Converts a picture to a palette of 256 colours. Takes PNGs of browsers: 8 bits, RGB or opaque RGBA, not interlaced. */
export function quantised(png: Uint8Array): Buffer {
  const image = decode(Buffer.from(png));
  const counts = countColours(image);
  const { palette, indexOf } = choosePalette(counts);
  return encode(image, palette, indexOf);
}

export function decode(png: Buffer): Image {
  if (!png.subarray(0, 8).equals(signature)) throw new Error('This is not a PNG.');
  const data: Buffer[] = [];
  let [width, height, channels] = [0, 0, 0];
  for (let at = 8; at < png.length; ) {
    const length = png.readUInt32BE(at);
    const type = png.toString('latin1', at + 4, at + 8);
    const body = png.subarray(at + 8, at + 8 + length);
    if (type === 'IHDR') {
      [width, height] = [body.readUInt32BE(0), body.readUInt32BE(4)];
      channels = { 2: 3, 6: 4 }[body[9] ?? -1] ?? 0;
      if (body[8] !== 8 || channels === 0 || body[12] !== 0) throw new Error('A PNG of this kind is not read.');
    } else if (type === 'IDAT') data.push(body);
    at += length + 12;
  }
  return {
    width,
    height,
    pixels: withoutAlpha(unfiltered(inflateSync(Buffer.concat(data)), width, height, channels), channels),
  };
}

/** Undoes the filters of rows (PNG specification, section 9). */
function unfiltered(raw: Buffer, width: number, height: number, channels: number): Uint8Array {
  const stride = width * channels;
  const out = new Uint8Array(stride * height);
  for (let row = 0; row < height; row += 1) {
    const filter = raw[row * (stride + 1)] ?? 0;
    for (let column = 0; column < stride; column += 1) {
      const at = row * stride + column;
      const left = column >= channels ? (out[at - channels] ?? 0) : 0;
      const up = row > 0 ? (out[at - stride] ?? 0) : 0;
      const corner = row > 0 && column >= channels ? (out[at - stride - channels] ?? 0) : 0;
      const predicted = [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter] ?? 0;
      out[at] = (raw[row * (stride + 1) + 1 + column] ?? 0) + predicted;
    }
  }
  return out;
}

function paeth(left: number, up: number, corner: number): number {
  const guess = left + up - corner;
  const [byLeft, byUp, byCorner] = [Math.abs(guess - left), Math.abs(guess - up), Math.abs(guess - corner)];
  if (byLeft <= byUp && byLeft <= byCorner) return left;
  return byUp <= byCorner ? up : corner;
}

function withoutAlpha(bytes: Uint8Array, channels: number): Uint8Array {
  if (channels === 3) return bytes;
  return bytes.filter((_, index) => index % 4 !== 3);
}

export const colourAt = (pixels: Uint8Array, pixel: number): number =>
  ((pixels[pixel * 3] ?? 0) << 16) | ((pixels[pixel * 3 + 1] ?? 0) << 8) | (pixels[pixel * 3 + 2] ?? 0);

/** How often each colour is seen; added to `counts`. */
export function countColours({ pixels }: Image, counts = new Map<number, number>()): Map<number, number> {
  for (let pixel = 0; pixel < pixels.length / 3; pixel += 1) {
    const colour = colourAt(pixels, pixel);
    counts.set(colour, (counts.get(colour) ?? 0) + 1);
  }
  return counts;
}

type Counted = readonly [colour: number, count: number];
const channelOf = (colour: number, shift: number): number => (colour >> shift) & 0xff;
const shifts = [16, 8, 0] as const;

/** Median cut: the box whose colours differ most, weighed by how often they are seen, is cut in two until there are enough. */
export function choosePalette(counts: ReadonlyMap<number, number>, colours = maxColours) {
  const boxes: Counted[][] = [[...counts]];
  while (boxes.length < colours) {
    const widest = boxes.reduce((best, box) => (weight(box) > weight(best) ? box : best));
    if (weight(widest) === 0) break;
    boxes.splice(boxes.indexOf(widest), 1, ...cutInTwo(widest));
  }
  const indexOf = new Map(boxes.flatMap((box, index) => box.map(([colour]) => [colour, index] as const)));
  return { palette: boxes.map(meanOf), indexOf };
}

const weights = new WeakMap<readonly Counted[], number>();
function weight(box: readonly Counted[]): number {
  const known = weights.get(box);
  if (known !== undefined) return known;
  const pixels = box.reduce((sum, [, count]) => sum + count, 0);
  const found = Math.max(...shifts.map((shift) => spread(box, shift))) ** 2 * Math.log2(1 + pixels);
  weights.set(box, found);
  return found;
}

function spread(box: readonly Counted[], shift: number): number {
  let [low, high] = [255, 0];
  for (const [colour] of box) {
    const value = channelOf(colour, shift);
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return high - low;
}

function cutInTwo(box: readonly Counted[]): [Counted[], Counted[]] {
  const shift = shifts.reduce((best, each) => (spread(box, each) > spread(box, best) ? each : best));
  const sorted = [...box].sort(([a], [b]) => channelOf(a, shift) - channelOf(b, shift) || a - b);
  const middle = (channelOf(sorted[0]?.[0] ?? 0, shift) + channelOf(sorted.at(-1)?.[0] ?? 0, shift)) / 2;
  const cut = sorted.findIndex(([colour]) => channelOf(colour, shift) > middle);
  return [sorted.slice(0, cut), sorted.slice(cut)];
}

function meanOf(box: readonly Counted[]): number {
  // The most frequent colour stays exact: surfaces must not drift.
  const [most, count] = box.reduce((best, each) => (each[1] > best[1] ? each : best));
  const all = box.reduce((sum, [, each]) => sum + each, 0);
  if (count * 2 > all) return most;
  return shifts.reduce<number>((colour, shift) => {
    const sum = box.reduce((total, [each, times]) => total + channelOf(each, shift) * times, 0);
    return colour | (Math.round(sum / all) << shift);
  }, 0);
}

function encode(
  { width, height, pixels }: Image,
  palette: readonly number[],
  indexOf: ReadonlyMap<number, number>,
): Buffer {
  const rows = Buffer.alloc((width + 1) * height);
  for (let pixel = 0; pixel < width * height; pixel += 1) {
    rows[pixel + Math.floor(pixel / width) + 1] = indexOf.get(colourAt(pixels, pixel)) ?? 0;
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 3, 0, 0, 0], 8);
  return Buffer.concat([
    signature,
    chunk('IHDR', header),
    chunk('PLTE', coloursOf(palette)),
    chunk('IDAT', deflateSync(rows, { level: 9, memLevel: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

/** Content of PLTE. */
export const coloursOf = (palette: readonly number[]): Buffer =>
  Buffer.from(palette.flatMap((colour) => shifts.map((shift) => channelOf(colour, shift))));

export function chunk(type: string, body: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(type, 'latin1'), body]);
  const ends = Buffer.alloc(8);
  ends.writeUInt32BE(body.length, 0);
  ends.writeUInt32BE(crc32(named), 4);
  return Buffer.concat([ends.subarray(0, 4), named, ends.subarray(4)]);
}
