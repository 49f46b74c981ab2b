import type { AnyWebSocketRoute } from './router.ts';
import type { ServerOptions, Socket } from './types.ts';

/** Close codes of RFC 6455, section 7.4.1. */
export const closeCodes = {
  goingAway: 1001,
  notText: 1003,
  policy: 1008,
  tooBig: 1009,
  internalError: 1011,
  restart: 1012,
  tryAgainLater: 1013,
};

/** One WebSocket as the routes see it; adapters add the wire. */
export abstract class Peer implements Socket<never> {
  readonly route: AnyWebSocketRoute;
  readonly principal: never;
  readonly remoteAddress: string;
  /** Nothing is sent any more: a close frame is on its way, or the connection is gone. */
  closing = false;
  /** A pong came since the last ping. */
  alive = true;
  /** Code that our side closed with: a peer that dies before it answers the close frame does not change it. */
  #ownClose: { code: number; reason: string } | undefined;

  constructor(route: AnyWebSocketRoute, principal: never, remoteAddress: string) {
    this.route = route;
    this.principal = principal;
    this.remoteAddress = remoteAddress;
  }

  abstract get bufferedBytes(): number;
  protected abstract sendText(text: string): void;
  protected abstract sendClose(code: number, reason: string): void;
  abstract ping(): void;
  /** Ends the connection without a close frame. */
  abstract cut(): void;

  send(text: string): void {
    if (this.closing) return;
    this.sendText(text);
    if (this.bufferedBytes > this.route.maxBufferedBytes) {
      this.close(closeCodes.tryAgainLater, 'The reader is too slow.');
    }
  }

  close(code: number, reason: string): void {
    if (this.closing) return;
    this.closing = true;
    this.#ownClose = { code, reason };
    this.sendClose(code, reason);
  }

  /** The connection has ended; the route receives our reason if we ended it. */
  ended(code: number, reason: string): { code: number; reason: string } {
    this.closing = true;
    return this.#ownClose ?? { code, reason };
  }
}

/** All WebSockets of one server: callbacks that cannot hurt, pings from one timer. */
export class Sockets {
  readonly #options: ServerOptions;
  readonly #onGone: () => void;
  readonly #peers = new Set<Peer>();
  #pinger: NodeJS.Timeout | undefined;

  constructor(options: ServerOptions, onGone: () => void) {
    this.#options = options;
    this.#onGone = onGone;
  }

  get size(): number {
    return this.#peers.size;
  }

  opened(peer: Peer, onBug: (error: unknown) => void): void {
    this.#peers.add(peer);
    this.#pinger ??= setInterval(() => this.#ping(), this.#options.limits.pingMs ?? 30_000).unref();
    guarded(peer, onBug, () => peer.route.open(peer));
  }

  /** The connection took bytes that waited. */
  drained(peer: Peer, onBug: (error: unknown) => void): void {
    if (!peer.closing && peer.route.drain) guarded(peer, onBug, () => peer.route.drain?.(peer));
  }

  received(peer: Peer, text: string, onBug: (error: unknown) => void): void {
    if (!peer.closing) guarded(peer, onBug, () => peer.route.message(peer, text));
  }

  closed(peer: Peer, code: number, reason: string, onBug: (error: unknown) => void): void {
    if (!this.#peers.delete(peer)) return;
    const ending = peer.ended(code, reason);
    guarded(peer, onBug, () => peer.route.close(peer, ending.code, ending.reason));
    this.#onGone();
  }

  #ping(): void {
    if (this.#peers.size === 0) this.dispose();
    for (const peer of this.#peers) {
      if (!peer.alive) peer.cut();
      else {
        peer.alive = false;
        peer.ping();
      }
    }
  }

  end(): void {
    for (const peer of this.#peers) peer.close(closeCodes.goingAway, 'The server is shutting down.');
  }

  cut(): void {
    for (const peer of this.#peers) peer.cut();
  }

  dispose(): void {
    clearInterval(this.#pinger);
    this.#pinger = undefined;
  }
}

function guarded(peer: Peer, onBug: (error: unknown) => void, callback: () => void): void {
  try {
    callback();
  } catch (error) {
    onBug(error);
    peer.close(closeCodes.internalError, 'Internal error.');
  }
}
