/** Animated PNGs (APNG 1.0) of screenshots: one palette for all frames, and only the changed part of each frame. */
import { deflateSync } from 'node:zlib';
import { choosePalette, chunk, colourAt, coloursOf, countColours, decode, maxColours, signature } from './png.ts';

/** A picture and how long it is shown. */
export interface Frame {
  /** PNG in the form that browsers write. */
  readonly png: Uint8Array;
  readonly milliseconds: number;
}

interface Region {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** Index of the palette for an unchanged pixel. */
const unchanged = maxColours - 1;

/** The animation, which repeats for ever. All frames have one size. @throws Error for none, or for another size */
export function animatedPng(frames: readonly Frame[]): Buffer {
  const images = frames.map(({ png }) => decode(Buffer.from(png)));
  const [first] = images;
  if (!first) throw new Error('An animation has at least one frame.');
  const { width, height } = first;
  if (images.some((image) => image.width !== width || image.height !== height))
    throw new Error('Frames differ in size.');
  const counts = new Map<number, number>();
  for (const image of images) countColours(image, counts);
  const { palette, indexOf } = choosePalette(counts, unchanged);
  const indexed = images.map(({ pixels }) =>
    Uint8Array.from({ length: width * height }, (_, pixel) => indexOf.get(colourAt(pixels, pixel)) ?? 0),
  );
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 3, 0, 0, 0], 8);
  const control = Buffer.alloc(8);
  control.writeUInt32BE(frames.length, 0);
  const chunks = [signature, chunk('IHDR', header), chunk('acTL', control)];
  chunks.push(chunk('PLTE', coloursOf([...palette, ...Array(maxColours - palette.length).fill(0)])));
  chunks.push(chunk('tRNS', Buffer.from([...Array(unchanged).fill(255), 0])));
  let sequence = 0;
  for (const [number, pixels] of indexed.entries()) {
    const before = indexed[number - 1];
    const region = before ? changedRegion(before, pixels, width, height) : { x: 0, y: 0, width, height };
    chunks.push(chunk('fcTL', frameControl(sequence++, region, frames[number]?.milliseconds ?? 0)));
    const data = deflateSync(rowsOf(pixels, before, region, width), { level: 9, memLevel: 9 });
    chunks.push(before ? chunk('fdAT', Buffer.concat([uint32(sequence++), data])) : chunk('IDAT', data));
  }
  return Buffer.concat([...chunks, chunk('IEND', Buffer.alloc(0))]);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value, 0);
  return bytes;
}

/** The smallest rectangle around all pixels that differ; one pixel when none does. */
function changedRegion(before: Uint8Array, after: Uint8Array, width: number, height: number): Region {
  let [left, top, right, bottom] = [width, height, 0, 0];
  for (let pixel = 0; pixel < after.length; pixel += 1) {
    if (before[pixel] === after[pixel]) continue;
    const [x, y] = [pixel % width, Math.floor(pixel / width)];
    left = Math.min(left, x);
    top = Math.min(top, y);
    right = Math.max(right, x);
    bottom = Math.max(bottom, y);
  }
  if (left > right) return { x: 0, y: 0, width: 1, height: 1 };
  return { x: left, y: top, width: right - left + 1, height: bottom - top + 1 };
}

/** The frame stays when the next one is laid over it (dispose 0, blend 1). */
function frameControl(sequence: number, { x, y, width, height }: Region, milliseconds: number): Buffer {
  const body = Buffer.alloc(26);
  for (const [index, value] of [sequence, width, height, x, y].entries()) body.writeUInt32BE(value, index * 4);
  body.writeUInt16BE(milliseconds, 20);
  body.writeUInt16BE(1_000, 22);
  body.set([0, 1], 24);
  return body;
}

function rowsOf(pixels: Uint8Array, before: Uint8Array | undefined, region: Region, width: number): Buffer {
  const rows = Buffer.alloc((region.width + 1) * region.height);
  for (let row = 0; row < region.height; row += 1) {
    for (let column = 0; column < region.width; column += 1) {
      const at = (region.y + row) * width + region.x + column;
      const index = pixels[at] ?? 0;
      rows[row * (region.width + 1) + column + 1] = before && before[at] === index ? unchanged : index;
    }
  }
  return rows;
}
