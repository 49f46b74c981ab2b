/** Frames of a WebSocket (RFC 6455, section 5), for a client without extensions. */

/** Bytes that no server may send. */
export class FrameError extends Error {
  override readonly name = 'FrameError';
}

export const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

/** One final frame, masked as a client has to. */
export function frameOf(opcode: number, body: Buffer): Buffer {
  const { length } = body;
  const extended = length < 126 ? 0 : length < 65_536 ? 2 : 8;
  const frame = Buffer.allocUnsafe(2 + extended + 4 + length);
  frame[0] = 0x80 | opcode;
  frame[1] = 0x80 | (extended === 0 ? length : extended === 2 ? 126 : 127);
  if (extended === 2) frame.writeUInt16BE(length, 2);
  if (extended === 8) frame.writeBigUInt64BE(BigInt(length), 2);
  const mask = process.getBuiltinModule('node:crypto').randomBytes(4);
  const at = 2 + extended;
  mask.copy(frame, at);
  for (let index = 0; index < length; index++) {
    frame[at + 4 + index] = (body[index] ?? 0) ^ (mask[index & 3] ?? 0);
  }
  return frame;
}

export interface FrameHandlers {
  readonly onText: (text: string) => void;
  readonly onPing: (body: Buffer) => void;
  /** @param code 1005 without one */
  readonly onClose: (code: number, reason: string) => void;
}

interface Head {
  readonly isFinal: boolean;
  readonly opcode: number;
  readonly length: number;
  readonly headLength: number;
}

/** Takes the bytes of a server as they come, and calls a handler for each message. Binary messages and pongs are left out. */
export class Frames {
  readonly #handlers: FrameHandlers;
  readonly #decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  /** Bytes that were received and not read. */
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  /** Bytes that the frame at the beginning of `#waiting` needs at the least. */
  #needed = 2;
  /** Of a message whose last frame has not come yet. */
  #parts: Buffer[] = [];
  #kind: number | undefined;

  constructor(handlers: FrameHandlers) {
    this.#handlers = handlers;
  }

  /** @throws FrameError, and what a handler throws */
  push(bytes: Buffer): void {
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    while (this.#waitingBytes >= this.#needed) {
      const all = this.#waiting.length === 1 ? (this.#waiting[0] ?? bytes) : Buffer.concat(this.#waiting);
      const head = headOf(all);
      const end = typeof head === 'number' ? head : head.headLength + head.length;
      if (typeof head === 'number' || all.length < end) {
        this.#waiting = [all];
        this.#needed = end;
        continue;
      }
      this.#waiting = end < all.length ? [all.subarray(end)] : [];
      this.#waitingBytes = all.length - end;
      this.#needed = 2;
      this.#take(head, all.subarray(head.headLength, end));
    }
  }

  #take({ isFinal, opcode }: Head, body: Buffer): void {
    if (opcode === opcodes.ping) this.#handlers.onPing(body);
    else if (opcode === opcodes.close) {
      const code = body.length < 2 ? 1005 : body.readUInt16BE(0);
      this.#handlers.onClose(code, this.#textOf(body.subarray(2)));
    } else if (opcode !== opcodes.pong) this.#takePart(opcode, isFinal, body);
  }

  #takePart(opcode: number, isFinal: boolean, body: Buffer): void {
    if ((opcode === opcodes.continuation) === (this.#kind === undefined))
      throw new FrameError('a frame is out of order');
    this.#kind ??= opcode;
    this.#parts.push(body);
    if (!isFinal) return;
    const isText = this.#kind === opcodes.text;
    const message = this.#parts.length === 1 ? body : Buffer.concat(this.#parts);
    this.#parts = [];
    this.#kind = undefined;
    if (isText) this.#handlers.onText(this.#textOf(message));
  }

  #textOf(bytes: Buffer): string {
    try {
      return this.#decoder.decode(bytes);
    } catch (error) {
      throw new FrameError('a text is not UTF-8', { cause: error });
    }
  }
}

/** @returns the bytes that are needed, when the head of the frame is not complete. @throws FrameError */
function headOf(bytes: Buffer): Head | number {
  const [first = 0, second = 0] = bytes;
  const opcode = first & 0x0f;
  const isFinal = (first & 0x80) !== 0;
  const short = second & 0x7f;
  const isControl = opcode >= opcodes.close;
  const isKnown = opcode <= opcodes.binary || (isControl && opcode <= opcodes.pong);
  if ((first & 0x70) !== 0 || (second & 0x80) !== 0 || !isKnown) throw new FrameError('a frame is invalid');
  if (isControl && (!isFinal || short > 125)) throw new FrameError('a control frame is invalid');
  const headLength = short === 126 ? 4 : short === 127 ? 10 : 2;
  if (bytes.length < headLength) return headLength;
  const length = short === 126 ? bytes.readUInt16BE(2) : short === 127 ? Number(bytes.readBigUInt64BE(2)) : short;
  if (!Number.isSafeInteger(length)) throw new FrameError('a frame is too long');
  return { isFinal, opcode, length, headLength };
}
