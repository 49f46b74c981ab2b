import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http';
import { type AddressInfo, Server as NetServer, type Socket as NetSocket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { WebSocket, WebSocketServer } from 'ws';
import { acceptQueued, type ListenAddress, plainHost } from '../lib/index.ts';
import { Core } from './core.ts';
import { headerBytes } from './framing.ts';
import { HttpError } from './http-error.ts';
import { methods } from './methods.ts';
import { endUnlessHeld, idleMs, NodeExchange } from './node-exchange.ts';
import { peerUidOf } from './peer-owner.ts';
import type { AnyWebSocketRoute } from './router.ts';
import { closeCodes, Peer } from './sockets.ts';
import { statusLine } from './status.ts';
import type { HttpServer, ServerOptions } from './types.ts';

interface PendingUpgrade {
  readonly socket: NetSocket;
  readonly res: ServerResponse;
  readonly upgrade: (principal: never) => void;
}

class NodePeer extends Peer {
  readonly #ws: WebSocket;

  constructor(ws: WebSocket, route: AnyWebSocketRoute, principal: never, remoteAddress: string) {
    super(route, principal, remoteAddress);
    this.#ws = ws;
  }

  get bufferedBytes(): number {
    return this.#ws.bufferedAmount;
  }

  protected sendText(text: string): void {
    this.#ws.send(text);
  }

  protected sendClose(code: number, reason: string): void {
    this.#ws.close(code, reason);
  }

  ping(): void {
    this.#ws.ping();
  }

  cut(): void {
    this.#ws.terminate();
  }
}

/** The server on `node:http`, and on `ws` if it has WebSockets. */
export class NodeServer implements HttpServer {
  readonly adapter = 'node';
  readonly library = 'node:http';
  readonly #core: Core;
  readonly #server: Server;
  bound: HttpServer['bound'];
  readonly #upgraders = new Map<AnyWebSocketRoute, WebSocketServer>();
  /** Connections whose last request was refused for its framing: later bytes are not served. */
  readonly #refused = new WeakSet<Duplex>();
  #connections = 0;
  #accepted = 0;
  #closing: Promise<void> | undefined;

  private constructor(options: ServerOptions) {
    this.#core = new Core(options);
    // Host is judged by us, in our words; the time-outs are those of uWebSockets.js, which has them compiled in.
    this.#server = createServer({
      maxHeaderSize: headerBytes,
      requireHostHeader: false,
      keepAliveTimeout: idleMs,
      headersTimeout: idleMs,
      requestTimeout: 0,
      connectionsCheckingInterval: 2_000,
      noDelay: true,
    });
    // Without this, `node:http` ends the connection of a half-closed client whose request still waits for its admission.
    (this.#server as unknown as { httpAllowHalfOpen: boolean }).httpAllowHalfOpen = true;
    this.#server.on('connection', (socket) => {
      this.#connections += 1;
      this.#accepted += 1;
      if (options.readsPeerUid) peerUidOf(socket);
      socket.on('end', endUnlessHeld);
      socket.once('close', () => {
        this.#connections -= 1;
      });
    });
    this.#server.on('request', (req, res) => this.#serve(req, res));
    this.#server.on('clientError', (error: NodeJS.ErrnoException, socket) => this.#refuseUnparsed(error, socket));
    this.#server.on('upgrade', (req, socket, head) => this.#upgrade(req, socket as NetSocket, head));
  }

  static async create(options: ServerOptions): Promise<NodeServer> {
    const server = new NodeServer(options);
    if (options.webSockets?.length) await server.#open(options.webSockets);
    return server;
  }

  /** Loads `ws`: 15 ms of a start, which a server without WebSockets need not wait for. */
  async #open(routes: readonly AnyWebSocketRoute[]): Promise<void> {
    const { WebSocketServer } = await import('ws');
    for (const route of routes) {
      const settings = {
        noServer: true,
        clientTracking: false,
        perMessageDeflate: false,
        maxPayload: route.maxPayloadBytes,
        handleProtocols: (_offered: Set<string>, req: IncomingMessage) =>
          this.#core.subprotocolOf(route, req.headers['sec-websocket-protocol']) || false,
      };
      this.#upgraders.set(route, new WebSocketServer(settings));
    }
  }

  #serve(req: IncomingMessage, res: ServerResponse): void {
    // A client that disconnects mid-answer is not an error; 'close' is enough.
    res.on('error', () => {});
    if (this.#refused.has(req.socket)) return;
    const x = new NodeExchange(this.#core, req, res);
    if (x.fault !== undefined) this.#refused.add(req.socket);
    if (x.fault === undefined && !x.path.startsWith('/'))
      this.#core.fail(x, new HttpError(400, 'invalidRequest', 'The target must be a path.'));
    else if (methods.get(req.method ?? '') === undefined) this.#core.serveUnknownMethod(x);
    else this.#core.serve(x);
  }

  /** Requests the parser refused: answered in this server's own words, on the bare socket. */
  #refuseUnparsed(error: NodeJS.ErrnoException, socket: Duplex): void {
    if (!socket.writable) {
      socket.destroy();
      return;
    }
    if (this.#refused.has(socket)) {
      socket.end();
      return;
    }
    const reply = this.#core.errorReply(refusalOf(error), undefined);
    const { status, body } = reply;
    const headers = this.#core.withHeaders(reply.headers, undefined);
    const lines = [`HTTP/1.1 ${statusLine(status)}`, ...headers.map(([name, value]) => `${name}: ${value}`)];
    lines.push(`content-length: ${Buffer.byteLength(body as string)}`, 'connection: close', '', '');
    socket.end(lines.join('\r\n') + String(body));
  }

  #upgrade(req: IncomingMessage, socket: NetSocket, head: Buffer): void {
    socket.on('error', () => socket.destroy());
    socket.off('end', endUnlessHeld);
    if (this.#refused.has(socket)) return;
    const res = new ServerResponse(req);
    const x = new NodeExchange(this.#core, req, res);
    const route = this.#webSocketAt(x.path);
    if (route === undefined || req.headers.upgrade?.toLowerCase() !== 'websocket' || req.method !== 'GET') {
      // Another protocol was offered (h2c): a server may ignore that (RFC 9110, section 7.8), here for the last request of a connection.
      answerOn(socket, res);
      if (req.headers['content-length'] === undefined && req.headers['transfer-encoding'] === undefined)
        this.#serve(req, res);
      else this.#core.fail(x, new HttpError(400, 'invalidRequest', 'A request with a body cannot ask for an upgrade.'));
      return;
    }
    const { remoteAddress } = x;
    const upgrade = (principal: never) =>
      this.#upgraders.get(route)?.handleUpgrade(req, socket, head, (ws) => {
        const peer = new NodePeer(ws, route, principal, remoteAddress);
        socket.on('drain', () => this.#core.sockets.drained(peer, (error) => void this.#core.bug(error)));
        this.#opened(ws, peer);
      });
    try {
      if (x.fault !== undefined) throw x.fault;
      const principal = this.#core.admitSocket(x, route);
      if (route.prepare) void this.#prepare(route, x, principal, { socket, res, upgrade });
      else upgrade(principal);
    } catch (error) {
      answerOn(socket, res);
      this.#core.fail(x, error);
    }
  }

  #webSocketAt(path: string): AnyWebSocketRoute | undefined {
    try {
      return this.#core.router.find(path)?.resource.webSocket;
    } catch {
      // A path that cannot be decoded is refused as that of an ordinary request.
      return undefined;
    }
  }

  /** The handshake waits for the route. A client that goes meanwhile aborts the signal of `x`. */
  async #prepare(route: AnyWebSocketRoute, x: NodeExchange, principal: never, on: PendingUpgrade): Promise<void> {
    const { socket, res, upgrade } = on;
    const leave = () => x.leave();
    socket.once('close', leave);
    try {
      const prepared = await route.prepare?.(x, principal);
      if (x.settled) prepared?.close();
      else {
        socket.off('close', leave);
        x.settled = true;
        upgrade(prepared?.principal as never);
      }
    } catch (error) {
      if (x.settled) return;
      answerOn(socket, res);
      this.#core.fail(x, error);
    }
  }

  #opened(ws: WebSocket, peer: NodePeer): void {
    const { sockets } = this.#core;
    const onBug = (error: unknown) => void this.#core.bug(error);
    let failure: number | undefined;
    ws.on('message', (data: Buffer, isBinary) => {
      peer.alive = true;
      if (isBinary) peer.close(closeCodes.notText, 'Text only.');
      else sockets.received(peer, data.toString(), onBug);
    });
    ws.on('pong', () => {
      peer.alive = true;
    });
    ws.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH') failure = closeCodes.tooBig;
    });
    ws.on('close', (code, reason) => sockets.closed(peer, failure ?? code, reason.toString(), onBug));
    sockets.opened(peer, onBug);
  }

  listen(address: ListenAddress, reusePort = false): Promise<ListenAddress> {
    const { port } = address;
    const host = plainHost(address.host);
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen({ host, port, exclusive: true, reusePort }, () => {
        this.#server.off('error', reject);
        this.bound = { host, port: (this.#server.address() as AddressInfo).port };
        resolve(this.bound);
      });
    });
  }

  stats(): { connections: number; sseReaders: number; webSockets: number } {
    const { channels, sockets } = this.#core;
    return { connections: this.#connections, sseReaders: channels.readers, webSockets: sockets.size };
  }

  async pause(): Promise<void> {
    await acceptQueued(() => this.#accepted);
    // The method of `node:http` closes idle connections, too.
    NetServer.prototype.close.call(this.#server);
  }

  close(graceMs: number): Promise<void> {
    this.#closing ??= this.#close(graceMs);
    return this.#closing;
  }

  async #close(graceMs: number): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeIdleConnections();
    await this.#core.drain(graceMs);
    // An answer given in this turn is still on its way through the streams.
    await new Promise((resolve) => setImmediate(resolve));
    this.#core.sockets.cut();
    this.#server.closeAllConnections();
    await closed;
    // The last 'close' events of the sockets follow that of the server.
    await new Promise((resolve) => setImmediate(resolve));
    this.#core.dispose();
  }
}

function refusalOf(error: NodeJS.ErrnoException): HttpError {
  if (error.code === 'HPE_HEADER_OVERFLOW') return new HttpError(431, 'headersTooLarge', 'The headers are too large.');
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return new HttpError(408, 'requestTimeout', 'The request is too slow.');
  return new HttpError(400, 'invalidRequest', 'The request is not valid HTTP.');
}

/** A socket that was handed out for an upgrade gets an ordinary answer, and is closed after it. */
function answerOn(socket: NetSocket, res: ServerResponse): void {
  res.shouldKeepAlive = false;
  res.assignSocket(socket);
  res.once('finish', () => socket.end());
}
