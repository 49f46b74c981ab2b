import type { WebSocket } from 'uWebSockets.js';
import type { AnyWebSocketRoute } from './router.ts';
import { Peer } from './sockets.ts';

export interface UserData {
  peer: UwsPeer | undefined;
  readonly principal: never;
  readonly remoteAddress: string;
}

export const utf8 = new TextDecoder();

/** Length of waiting frames, in UTF-16 units, at which they are sent at once. */
const maxWaiting = 65_536;

export class UwsPeer extends Peer {
  readonly #ws: WebSocket<UserData>;
  #over = false;
  /** Frames that leave together: each write is a system call, and a turn has several things to say at once. */
  #waiting: string[] = [];
  /** Length of the waiting messages in UTF-16 units. */
  #waitingLength = 0;

  constructor(ws: WebSocket<UserData>, route: AnyWebSocketRoute, principal: never, remoteAddress: string) {
    super(route, principal, remoteAddress);
    this.#ws = ws;
  }

  get bufferedBytes(): number {
    return this.#over ? 0 : this.#ws.getBufferedAmount() + this.#waitingLength;
  }

  protected sendText(text: string): void {
    if (this.#over) return;
    if (this.#waiting.length === 0) queueMicrotask(() => this.#flush());
    this.#waiting.push(text);
    this.#waitingLength += text.length;
    if (this.#waitingLength > maxWaiting) this.#flush();
  }

  protected sendClose(code: number, reason: string): void {
    this.#flush();
    if (!this.#over) this.#ws.end(code, reason);
  }

  ping(): void {
    if (!this.#over) this.#ws.ping();
  }

  cut(): void {
    this.#flush();
    if (!this.#over) this.#ws.close();
  }

  over(): void {
    this.#over = true;
    this.#waiting = [];
    this.#waitingLength = 0;
  }

  /** Sends the waiting messages: at the end of the present step of the program, or before the connection ends. */
  #flush(): void {
    if (this.#over || this.#waiting.length === 0) return;
    const texts = this.#waiting;
    this.#waiting = [];
    this.#waitingLength = 0;
    this.#ws.cork(() => {
      for (const text of texts) if (!this.#over) this.#ws.send(text, false);
    });
  }
}
