/** Small pictures in order, one of each type, and ways to spoil them. */
import { crc32, deflateSync } from 'node:zlib';

const decoded = (base64: string): Buffer => Buffer.from(base64, 'base64');

export const pictures = {
  png: decoded('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='),
  jpeg: decoded(
    '/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABsSFBcUERsXFhceHBsgKEIrKCUlKFE6PTBCYFVlZF9VXVtqeJmBanGQc1tdhbWGkJ6jq62rZ4C8ybqmx5moq6T/2wBDARweHigjKE4rK06kbl1upKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKT/wAARCAAGAAgDASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAT/xAAUEAEAAAAAAAAAAAAAAAAAAAAA/8QAFQEBAQAAAAAAAAAAAAAAAAAABAb/xAAUEQEAAAAAAAAAAAAAAAAAAAAA/9oADAMBAAIRAxEAPwCAANSP/9k=',
  ),
  gif: decoded('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7'),
  webp: decoded('UklGRjgAAABXRUJQVlA4ICwAAACQAQCdASoIAAYABABoJaACdLoAA5gA/us2/6E2Paiv/0JP/ibP+Js+AAAAAA=='),
} as const;

export type PictureType = keyof typeof pictures;

/** Data URL of a picture, as the type that it is called. */
export const pictureUrl = (bytes: Buffer, type: string): string =>
  `data:image/${type};base64,${bytes.toString('base64')}`;

function pngChunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const chunk = Buffer.alloc(body.length + 8);
  chunk.writeUInt32BE(data.length, 0);
  body.copy(chunk, 4);
  chunk.writeUInt32BE(crc32(body), body.length + 4);
  return chunk;
}

/** A grey PNG of these dimensions. */
export function png(width: number, height: number): Buffer {
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.writeUInt8(8, 8);
  const lines = deflateSync(Buffer.alloc((width + 1) * height));
  const signature = pictures.png.subarray(0, 8);
  return Buffer.concat([signature, pngChunk('IHDR', head), pngChunk('IDAT', lines), pngChunk('IEND', Buffer.alloc(0))]);
}

/** A GIF of two pictures. */
export const animated: Buffer = Buffer.concat([
  pictures.gif.subarray(0, -1),
  pictures.gif.subarray(pictures.gif.indexOf(Buffer.from([0x2c, 0, 0, 0, 0])), -1),
  Buffer.of(0x3b),
]);
