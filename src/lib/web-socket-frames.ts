/** Frames of WebSockets as a client writes and reads them (RFC 6455, section 5). No extensions. */
import { createHash, randomBytes } from 'node:crypto';

export const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

export interface Frame {
  readonly opcode: number;
  readonly isFinal: boolean;
  readonly payload: Buffer;
}

/** Value of `Sec-WebSocket-Accept` with which a server shows that it means a WebSocket: made of the key of the client. */
export const acceptOf = (key: string): string =>
  createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');

/** Random value of `Sec-WebSocket-Key`. */
export const newKey = (): string => randomBytes(16).toString('base64');

/** Code of a payload of a close frame; 1005 without one. */
export const closeCode = (payload: Buffer): number => (payload.length >= 2 ? payload.readUInt16BE(0) : 1005);

/** One whole masked frame of a client. */
export function clientFrame(opcode: number, payload: Buffer): Buffer {
  const { length } = payload;
  const begin = length < 126 ? 6 : length < 65_536 ? 8 : 14;
  const frame = Buffer.allocUnsafe(begin + length);
  frame[0] = 0x80 | opcode;
  frame[1] = 0x80 | (length < 126 ? length : length < 65_536 ? 126 : 127);
  if (begin === 8) frame.writeUInt16BE(length, 2);
  if (begin === 14) frame.writeBigUInt64BE(BigInt(length), 2);
  const mask = randomBytes(4);
  mask.copy(frame, begin - 4);
  for (let at = 0; at < length; at += 1) frame[begin + at] = (payload[at] ?? 0) ^ (mask[at & 3] ?? 0);
  return frame;
}

/** Splits the bytes of a server into frames. */
export class FrameReader {
  readonly #maxBytes: number;
  #chunks: Buffer[] = [];
  #length = 0;
  /** Bytes without which nothing can be read. */
  #wanted = 2;

  /** @param maxBytes limit of a frame */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /**
   * Frames that are complete with these bytes.
   *
   * @throws Error for a frame that is masked, too long or of an extension
   */
  *read(chunk: Buffer): Generator<Frame, void, undefined> {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    if (this.#length < this.#wanted) return;
    let bytes = Buffer.concat(this.#chunks.splice(0), this.#length);
    for (;;) {
      const [first = 0, second = 0] = bytes;
      if ((first & 0x70) !== 0 || (second & 0x80) !== 0) throw new Error('the WebSocket was not understood');
      const size = sizeOf(bytes);
      if (size !== null && size.end > this.#maxBytes) throw new Error('the answer is too long');
      this.#wanted = size?.end ?? headBytes(second);
      if (size === null || bytes.length < size.end) break;
      const payload = bytes.subarray(size.begin, size.end);
      bytes = bytes.subarray(size.end);
      yield { opcode: first & 0x0f, isFinal: (first & 0x80) !== 0, payload };
    }
    this.#chunks = [bytes];
    this.#length = bytes.length;
  }
}

const headBytes = (second: number): number => ((second & 0x7f) === 127 ? 10 : (second & 0x7f) === 126 ? 4 : 2);

/** Where the payload of the first frame begins and ends; null while its head is not whole. */
function sizeOf(bytes: Buffer): { readonly begin: number; readonly end: number } | null {
  const short = (bytes[1] ?? 0) & 0x7f;
  const begin = headBytes(short);
  if (bytes.length < begin) return null;
  const length = short === 127 ? Number(bytes.readBigUInt64BE(2)) : short === 126 ? bytes.readUInt16BE(2) : short;
  return { begin, end: begin + length };
}
