/** Structure of the picture formats that model services take: type, dimensions and end of a picture. */

/** Dimensions of a picture, and the bytes to pass on. */
export interface Shape {
  readonly width: number;
  readonly height: number;
  /** Offset behind the picture; bytes from there on are foreign. */
  readonly end: number;
  /** Offset behind the first picture of several, which can be shown alone. Absent: there is only one. */
  readonly endOfFirst?: number;
}

/** Reads the structure of a whole file. Undefined: it is cut off or damaged. */
type Walk = (bytes: Buffer) => Shape | undefined;

interface Format {
  readonly mimeType: string;
  readonly hasType: (head: Uint8Array) => boolean;
  readonly walk: Walk;
}

export const ascii = (text: string): readonly number[] => [...text].map((letter) => letter.charCodeAt(0));
export const hasBytes = (head: Uint8Array, bytes: readonly number[], at = 0): boolean =>
  head.length >= at + bytes.length && bytes.every((byte, index) => head[at + index] === byte);

/** https://www.w3.org/TR/png-3/#5Chunk-layout */
const walkPng: Walk = (bytes) => {
  let size: Pick<Shape, 'width' | 'height'> | undefined;
  let hasData = false;
  for (let at = 8; at + 12 <= bytes.length; ) {
    const data = at + 8;
    const end = data + bytes.readUInt32BE(at);
    if (end + 4 > bytes.length) return undefined;
    const type = bytes.toString('latin1', at + 4, data);
    if (isCritical(type) && checksum(bytes.subarray(at + 4, end)) !== bytes.readUInt32BE(end)) return undefined;
    if (type === 'IHDR' && end - data === 13) {
      size = { width: bytes.readUInt32BE(data), height: bytes.readUInt32BE(data + 4) };
    }
    // A picture begins with its head.
    if (!size) return undefined;
    hasData ||= type === 'IDAT';
    at = end + 4;
    if (type === 'IEND') return hasData ? { ...size, end: at } : undefined;
  }
  return undefined;
};

/** Readers pass over a wrong checksum of the other chunks. */
const isCritical = (type: string): boolean => /^[A-Z]/.test(type);

const checksum = (bytes: Uint8Array): number => process.getBuiltinModule('node:zlib').crc32(bytes);

/** Start of a frame; C4, C8 and CC are other segments. https://www.w3.org/Graphics/JPEG/itu-t81.pdf, table B.1 */
const isFrame = (marker: number): boolean => marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
const isRestart = (marker: number): boolean => marker >= 0xd0 && marker <= 0xd7;

const walkJpeg: Walk = (bytes) => {
  let size: Pick<Shape, 'width' | 'height'> | undefined;
  let hasScan = false;
  for (let at = 2; ; ) {
    // In a scan, FF 00 and restart markers belong to its data.
    at = bytes.indexOf(0xff, at);
    if (at < 0 || at + 1 >= bytes.length) return undefined;
    const marker = bytes.readUInt8(at + 1);
    if (marker === 0xff) at += 1;
    else if (marker === 0 || marker === 1 || isRestart(marker)) at += 2;
    else if (marker === 0xd9) return size && hasScan ? { ...size, end: at + 2 } : undefined;
    else {
      if (at + 4 > bytes.length) return undefined;
      const end = at + 2 + bytes.readUInt16BE(at + 2);
      if (end > bytes.length) return undefined;
      if (isFrame(marker) && end >= at + 9) {
        size = { height: bytes.readUInt16BE(at + 5), width: bytes.readUInt16BE(at + 7) };
      }
      hasScan ||= marker === 0xda;
      at = end;
    }
  }
};

/** https://www.w3.org/Graphics/GIF/spec-gif89a.txt */
const walkGif: Walk = (bytes) => {
  if (bytes.length < 13) return undefined;
  const size = { width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) };
  const ends: number[] = [];
  let at = 13 + colours(bytes.readUInt8(10));
  while (at < bytes.length) {
    const block = bytes.readUInt8(at);
    if (block === 0x3b) break;
    if (block !== 0x2c && block !== 0x21) return undefined;
    const isPicture = block === 0x2c;
    if (isPicture && at + 10 >= bytes.length) return undefined;
    // A picture has its own colours and a code size, an extension has a label, before the data.
    at += isPicture ? 11 + colours(bytes.readUInt8(at + 9)) : 2;
    const end = endOfBlocks(bytes, at);
    if (end === undefined) return undefined;
    at = end;
    if (isPicture) ends.push(at);
  }
  const [endOfFirst] = ends;
  if (endOfFirst === undefined) return undefined;
  return { ...size, end: Math.min(at + 1, bytes.length), ...(ends.length > 1 && { endOfFirst }) };
};

const colours = (flags: number): number => (flags & 0x80 ? 3 << ((flags & 7) + 1) : 0);

function endOfBlocks(bytes: Buffer, start: number): number | undefined {
  for (let at = start; at < bytes.length; ) {
    const length = bytes.readUInt8(at);
    at += 1 + length;
    if (length === 0) return at;
  }
  return undefined;
}

/** https://developers.google.com/speed/webp/docs/riff_container */
const walkWebp: Walk = (bytes) => {
  const end = 8 + bytes.readUInt32LE(4);
  if (end > bytes.length) return undefined;
  let size: Pick<Shape, 'width' | 'height'> | undefined;
  let hasData = false;
  for (let at = 12; at + 8 <= end; ) {
    const type = bytes.toString('latin1', at, at + 4);
    const data = at + 8;
    const length = bytes.readUInt32LE(at + 4);
    if (data + length > end) return undefined;
    size ??= webpSize(type, bytes.subarray(data, data + length));
    hasData ||= type === 'VP8 ' || type === 'VP8L' || type === 'ANMF';
    at = data + length + (length & 1);
  }
  return size && hasData ? { ...size, end } : undefined;
};

function webpSize(type: string, data: Buffer): Pick<Shape, 'width' | 'height'> | undefined {
  if (type === 'VP8X' && data.length >= 10)
    return { width: data.readUIntLE(4, 3) + 1, height: data.readUIntLE(7, 3) + 1 };
  if (type === 'VP8 ' && data.length >= 10 && hasBytes(data, [0x9d, 0x01, 0x2a], 3)) {
    return { width: data.readUInt16LE(6) & 0x3fff, height: data.readUInt16LE(8) & 0x3fff };
  }
  if (type !== 'VP8L' || data.length < 5 || data[0] !== 0x2f) return undefined;
  const bits = data.readUInt32LE(1);
  return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
}

const formats: readonly Format[] = [
  {
    mimeType: 'image/png',
    hasType: (head) => hasBytes(head, [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    walk: walkPng,
  },
  { mimeType: 'image/jpeg', hasType: (head) => hasBytes(head, [0xff, 0xd8, 0xff]), walk: walkJpeg },
  {
    mimeType: 'image/gif',
    hasType: (head) => hasBytes(head, ascii('GIF87a')) || hasBytes(head, ascii('GIF89a')),
    walk: walkGif,
  },
  {
    mimeType: 'image/webp',
    hasType: (head) => hasBytes(head, ascii('RIFF')) && hasBytes(head, ascii('WEBP'), 8),
    walk: walkWebp,
  },
];

const formatOf = (head: Uint8Array): Format | undefined => formats.find(({ hasType }) => hasType(head));

/** Media type of a picture by its first bytes. Undefined: no picture that model services take. */
export const pictureType = (head: Uint8Array): string | undefined => formatOf(head)?.mimeType;

/** Structure of a whole picture. Undefined: it is cut off or damaged, or not a picture. */
export const shapeOf: Walk = (bytes) => formatOf(bytes)?.walk(bytes);
