/** Client side of a WebSocket (RFC 6455) to a server of this machine, for text. */
import type { ClientRequest } from 'node:http';
import type { Socket } from 'node:net';
import type { SocketHandlers, TextSocket } from './text-socket.ts';
import { FrameError, Frames, frameOf, opcodes } from './web-socket-frames.ts';

/** Ends an opened connection whose server does not close it, after this long. */
const closeMs = 3_000;

/**
 * Opens a `ws:` address. The global `WebSocket` costs a process 35 ms of processor time at its first use, a fifth of a command.
 */
export class LocalSocket implements TextSocket {
  readonly #handlers: SocketHandlers;
  readonly #request: ClientRequest;
  readonly #frames: Frames;
  #socket: Socket | undefined;
  #closeFrame: { readonly code: number; readonly reason: string } | undefined;
  #isClosing = false;
  #isOver = false;

  constructor(url: string, handlers: SocketHandlers) {
    this.#handlers = handlers;
    this.#frames = new Frames({
      onText: (text) => {
        if (!this.#isClosing) handlers.onMessage(text);
      },
      onPing: (body) => this.#write(opcodes.pong, body),
      onClose: (code, reason) => {
        this.#closeFrame = { code, reason };
        this.close();
      },
    });
    const address = new URL(url);
    address.protocol = 'http:';
    const key = process.getBuiltinModule('node:crypto').randomBytes(16).toString('base64');
    // `import … from 'node:http'` would evaluate its `WebSocket` getter, and with it load the client that this one replaces.
    this.#request = process.getBuiltinModule('node:http').request(address, {
      agent: false,
      headers: {
        connection: 'Upgrade',
        upgrade: 'websocket',
        'sec-websocket-key': key,
        'sec-websocket-version': '13',
      },
    });
    this.#request.on('error', () => this.#fail());
    this.#request.once('close', () => {
      if (this.#socket === undefined) this.#fail();
    });
    this.#request.once('response', (answer) => {
      answer.destroy();
      this.#fail();
    });
    this.#request.once('upgrade', (answer, socket: Socket, head) => {
      if (answer.headers['sec-websocket-accept'] === acceptFor(key) && !this.#isClosing) {
        this.#open(socket, head);
      } else {
        socket.destroy();
        this.#fail();
      }
    });
    this.#request.end();
  }

  get isOpen(): boolean {
    return this.#socket !== undefined && !this.#isClosing;
  }

  send(text: string): void {
    if (this.isOpen) this.#write(opcodes.text, Buffer.from(text));
  }

  /** Says goodbye, and waits for the server to close. Before the connection is open it is given up. */
  close(): void {
    if (this.#isClosing || this.#isOver) return;
    this.#isClosing = true;
    const socket = this.#socket;
    if (socket === undefined) {
      this.#request.destroy();
      return;
    }
    const { code } = this.#closeFrame ?? {};
    const body = Buffer.alloc(code === undefined || code === 1005 ? 0 : 2);
    if (body.length > 0) body.writeUInt16BE(code ?? 0);
    socket.end(frameOf(opcodes.close, body));
    setTimeout(() => socket.destroy(), closeMs).unref();
  }

  #open(socket: Socket, head: Buffer): void {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.setTimeout(0);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => this.#finish());
    socket.on('end', () => this.close());
    socket.on('data', (bytes: Buffer) => this.#receive(bytes));
    this.#handlers.onOpen();
    if (head.length > 0) this.#receive(head);
  }

  #receive(bytes: Buffer): void {
    try {
      this.#frames.push(bytes);
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      // Nothing after it can be understood.
      this.#socket?.destroy();
      this.#fail();
    }
  }

  #write(opcode: number, body: Buffer): void {
    if (this.isOpen) this.#socket?.write(frameOf(opcode, body));
  }

  #fail(): void {
    if (this.#isOver) return;
    this.#handlers.onError();
    this.#finish();
  }

  #finish(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { code, reason } = this.#closeFrame ?? { code: 1006, reason: '' };
    this.#handlers.onClose(code, reason);
  }
}

const acceptFor = (key: string): string =>
  process
    .getBuiltinModule('node:crypto')
    .createHash('sha1')
    .update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
    .digest('base64');
