import type { WebSocket } from 'uWebSockets.js';
import type { AnyWebSocketRoute } from './router.ts';
import { Peer } from './sockets.ts';

export interface UserData {
  peer: UwsPeer | undefined;
  readonly principal: never;
  readonly remoteAddress: string;
}

export const utf8 = new TextDecoder();

export class UwsPeer extends Peer {
  readonly #ws: WebSocket<UserData>;
  #over = false;

  constructor(ws: WebSocket<UserData>, route: AnyWebSocketRoute, principal: never, remoteAddress: string) {
    super(route, principal, remoteAddress);
    this.#ws = ws;
  }

  get bufferedBytes(): number {
    return this.#over ? 0 : this.#ws.getBufferedAmount();
  }

  protected sendText(text: string): void {
    if (!this.#over) this.#ws.send(text, false);
  }

  protected sendClose(code: number, reason: string): void {
    if (!this.#over) this.#ws.end(code, reason);
  }

  ping(): void {
    if (!this.#over) this.#ws.ping();
  }

  cut(): void {
    if (!this.#over) this.#ws.close();
  }

  over(): void {
    this.#over = true;
  }
}
