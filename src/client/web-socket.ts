/** WebSocket to a server of this machine. The client of Node costs a process 43 ms of processor time and 10 MiB at its first use. */
import type { ClientRequest } from 'node:http';
import type { Socket } from 'node:net';
import { acceptOf, clientFrame, closeCode, FrameReader, newKey, opcodes } from '../lib/index.ts';

/** Calls of a socket; `onEnd` is the last. */
export interface WebSocketHandlers {
  readonly onOpen: () => void;
  /** A complete text. Binary messages are ignored. */
  readonly onText: (text: string) => void;
  /** The connection is over, or never was: 1006 for one that ended without a word. */
  readonly onEnd: (code: number, reason: string) => void;
}

/** Longest message of a server; a longer one ends the connection. */
const maxBytes = 268_435_456;
/** Time that a server has to end a connection which this side has closed. */
const lingerMs = 3_000;
const codes = { protocolError: 1002, abnormal: 1006 } as const;

/** A connection for texts, which begins to open when it is made. */
export class TextSocket {
  readonly #handlers: WebSocketHandlers;
  readonly #frames = new FrameReader(maxBytes);
  readonly #key = newKey();
  #request: ClientRequest | undefined;
  #stream: Socket | undefined;
  /** Of the message that is being received: its frames, their bytes, and its kind. */
  readonly #parts: Buffer[] = [];
  #length = 0;
  #isText = false;
  #state: 'connecting' | 'open' | 'closing' | 'over' = 'connecting';

  /** @param url `ws:` or `wss:`, with whatever token it carries */
  constructor(url: string, handlers: WebSocketHandlers) {
    this.#handlers = handlers;
    const isTls = /^(?:wss|https):$/.test(new URL(url).protocol);
    const { request } = process.getBuiltinModule(isTls ? 'node:https' : 'node:http');
    const headers = {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': this.#key,
    };
    this.#request = request(url.replace(/^ws/i, 'http'), { agent: false, headers })
      .on('error', () => this.#finish())
      .once('response', () => this.#finish())
      .once('upgrade', ({ headers }, stream: Socket, rest) => {
        if (headers['sec-websocket-accept'] === acceptOf(this.#key)) this.#begin(stream, rest);
        else stream.destroy();
      });
    this.#request.end();
  }

  get isOpen(): boolean {
    return this.#state === 'open';
  }

  send(text: string): void {
    if (this.isOpen) this.#stream?.write(clientFrame(opcodes.text, Buffer.from(text)));
  }

  /** Ends the connection once the server has agreed, or has not within some seconds. */
  close(): void {
    if (this.#state === 'connecting') this.#finish();
    else if (this.#state === 'open') this.#sayGoodbye(Buffer.alloc(0));
  }

  #begin(stream: Socket, rest: Buffer): void {
    this.#request = undefined;
    this.#stream = stream;
    this.#state = 'open';
    for (const event of ['error', 'end', 'close']) stream.on(event, () => this.#finish());
    stream.on('data', (bytes: Buffer) => this.#receive(bytes));
    this.#handlers.onOpen();
    if (rest.length > 0) this.#receive(rest);
  }

  #receive(bytes: Buffer): void {
    try {
      for (const frame of this.#frames.read(bytes)) {
        if (this.#state === 'over') return;
        if (frame.opcode === opcodes.close) this.#takeGoodbye(frame.payload);
        else if (frame.opcode === opcodes.ping) this.#stream?.write(clientFrame(opcodes.pong, frame.payload));
        else if (frame.opcode <= opcodes.binary) this.#collect(frame.opcode, frame.payload, frame.isFinal);
      }
    } catch {
      // The bytes after it cannot be read.
      this.#finish(codes.protocolError);
    }
  }

  #collect(opcode: number, payload: Buffer, isFinal: boolean): void {
    if (opcode !== opcodes.continuation) this.#isText = opcode === opcodes.text;
    this.#parts.push(payload);
    this.#length += payload.length;
    if (this.#length > maxBytes) throw new Error('the message is too long');
    if (!isFinal) return;
    const message = Buffer.concat(this.#parts.splice(0), this.#length);
    this.#length = 0;
    if (this.#isText && this.isOpen) this.#handlers.onText(message.toString());
  }

  #takeGoodbye(payload: Buffer): void {
    if (this.#state === 'open') this.#sayGoodbye(payload.subarray(0, 2));
    this.#finish(closeCode(payload), payload.toString('utf8', 2));
  }

  #sayGoodbye(payload: Buffer): void {
    this.#state = 'closing';
    this.#stream?.write(clientFrame(opcodes.close, payload));
    setTimeout(() => this.#finish(), lingerMs).unref();
  }

  #finish(code: number = codes.abnormal, reason = ''): void {
    if (this.#state === 'over') return;
    this.#state = 'over';
    // Written bytes are still sent.
    this.#stream?.destroySoon();
    this.#request?.destroy();
    this.#handlers.onEnd(code, reason);
  }
}
