import type { HttpRequest, HttpResponse, TemplatedApp, us_listen_socket, us_socket } from 'uWebSockets.js';
import { acceptQueued, hostAndPort, type ListenAddress, plainHost } from '../lib/index.ts';
import { Core } from './core.ts';
import type { LoadedUws } from './load-uws.ts';
import { methods } from './methods.ts';
import type { AnyWebSocketRoute, Resource } from './router.ts';
import { closeCodes } from './sockets.ts';
import type { HttpServer, ServerOptions } from './types.ts';
import { UwsExchange } from './uws-exchange.ts';
import { type UserData, UwsPeer, utf8 } from './uws-peer.ts';

type Match = Resource | undefined;

/** The value of LIBUS_LISTEN_EXCLUSIVE_PORT: without it two servers share a port (SO_REUSEPORT) and both "succeed". */
const exclusivePort = 1;
const sharedPort = 0;

const registrations = [
  ['GET', 'get'],
  ['POST', 'post'],
  ['PUT', 'put'],
  ['PATCH', 'patch'],
  ['DELETE', 'del'],
] as const;

/** The errno of a bind that uWebSockets.js only reports as failed: the same bind is tried once with node:net. */
async function bindError(host: string, port: number): Promise<Error> {
  const { createServer } = await import('node:net');
  const probe = createServer();
  return new Promise<Error>((resolve) => {
    probe.once('error', resolve);
    probe.listen({ host, port, exclusive: true }, () => {
      probe.close();
      resolve(
        Object.assign(new Error(`listen EADDRINUSE: address in use ${hostAndPort({ host, port })}`), {
          code: 'EADDRINUSE',
        }),
      );
    });
  });
}

/** The server on uWebSockets.js. */
export class UwsServer implements HttpServer {
  readonly adapter = 'uws';
  readonly library: string;
  readonly #uws: LoadedUws['uws'];
  readonly #core: Core;
  readonly #app: TemplatedApp;
  #listenSocket: us_listen_socket | undefined;
  bound: HttpServer['bound'];
  #httpConnections = 0;
  #closing: Promise<void> | undefined;

  constructor({ uws, library }: LoadedUws, options: ServerOptions) {
    this.library = library;
    this.#uws = uws;
    this.#core = new Core(options);
    this.#app = uws.App();
    const count = (_res: HttpResponse, change: number): void => {
      this.#httpConnections += change;
    };
    this.#app.filter(count);
    for (const resource of this.#core.router.literals.values()) this.#registerLiteral(resource);
    for (const route of options.webSockets ?? []) this.#registerSocket(route);
    this.#app.any('/*', (res, req) => this.#serve(res, req));
  }

  /** Routed by the library itself: saves reading method and URL on the paths that are asked most. */
  #registerLiteral(resource: Resource): void {
    for (const [method, register] of registrations) {
      if (!resource.methods.has(method) || /[:*]/.test(resource.path)) continue;
      this.#app[register](resource.path, (res, req) => {
        this.#serveExchange(new UwsExchange(this.#core, method, resource.path, false, res, req), resource);
      });
    }
  }

  #serve(res: HttpResponse, req: HttpRequest): void {
    const name = req.getCaseSensitiveMethod();
    const method = methods.get(name);
    const path = req.getUrl();
    const x = new UwsExchange(this.#core, method ?? 'GET', path, name === 'HEAD', res, req);
    if (method === undefined) {
      this.#core.serveUnknownMethod(x);
      x.endTurn();
    } else this.#serveExchange(x, undefined);
  }

  #serveExchange(x: UwsExchange, resource: Match): void {
    this.#core.serve(x, resource);
    x.endTurn();
  }

  #registerSocket(route: AnyWebSocketRoute): void {
    const { sockets } = this.#core;
    const onBug = (error: unknown) => void this.#core.bug(error);
    this.#app.ws<UserData>(route.path, {
      // The library drops the connection without a close frame past its own limit: ours is lower and answers 1009.
      maxPayloadLength: route.maxPayloadBytes * 2 + 65_536,
      maxBackpressure: 0,
      idleTimeout: 0,
      sendPingsAutomatically: false,
      upgrade: (res, req, context) => this.#upgrade(route, res, req, context),
      open: (ws) => {
        const data = ws.getUserData();
        data.peer = new UwsPeer(ws, route, data.principal, data.remoteAddress);
        sockets.opened(data.peer, onBug);
      },
      message: (ws, message, isBinary) => {
        const { peer } = ws.getUserData();
        if (peer === undefined) return;
        peer.alive = true;
        if (message.byteLength > route.maxPayloadBytes) peer.close(closeCodes.tooBig, 'The message is too long.');
        else if (isBinary) peer.close(closeCodes.notText, 'Text only.');
        else sockets.received(peer, utf8.decode(message), onBug);
      },
      drain: (ws) => {
        const { peer } = ws.getUserData();
        if (peer !== undefined) sockets.drained(peer, onBug);
      },
      pong: (ws) => {
        const { peer } = ws.getUserData();
        if (peer !== undefined) peer.alive = true;
      },
      close: (ws, code, message) => {
        const { peer } = ws.getUserData();
        const reason = utf8.decode(message);
        peer?.over();
        const tooBig = code === 1006 && reason === 'Received too big message';
        if (peer !== undefined) sockets.closed(peer, tooBig ? closeCodes.tooBig : code, reason, onBug);
      },
    });
  }

  #upgrade(
    route: AnyWebSocketRoute,
    res: HttpResponse,
    req: HttpRequest,
    context: Parameters<HttpResponse['upgrade']>[4],
  ): void {
    const x = new UwsExchange(this.#core, 'GET', req.getUrl(), false, res, req);
    try {
      if (x.fault !== undefined) throw x.fault;
      const principal = this.#core.admitSocket(x, route);
      const { remoteAddress } = x;
      const key = req.getHeader('sec-websocket-key');
      const extensions = req.getHeader('sec-websocket-extensions');
      const subprotocol = this.#core.subprotocolOf(route, req.getHeader('sec-websocket-protocol'));
      const upgrade = (found: never) => {
        const data: UserData = { peer: undefined, principal: found, remoteAddress };
        x.settled = true;
        x.endTurn();
        this.#httpConnections -= 1;
        res.upgrade(data, key, subprotocol, extensions, context);
      };
      if (route.prepare) void this.#prepare(route, x, principal, (found) => res.cork(() => upgrade(found)));
      else upgrade(principal);
    } catch (error) {
      this.#core.fail(x, error);
      x.endTurn();
    }
  }

  /** The handshake waits for the route. A client that goes meanwhile aborts the signal of `x`. */
  async #prepare(
    route: AnyWebSocketRoute,
    x: UwsExchange,
    principal: never,
    upgrade: (found: never) => void,
  ): Promise<void> {
    x.detach();
    try {
      const prepared = await route.prepare?.(x, principal);
      if (x.settled) prepared?.close();
      else upgrade(prepared?.principal as never);
    } catch (error) {
      this.#core.fail(x, error);
    }
  }

  async listen(address: ListenAddress, reusePort = false): Promise<ListenAddress> {
    const { port } = address;
    const host = plainHost(address.host);
    const token = await new Promise<us_listen_socket | false>((resolve) => {
      // The typings lack the form with options; the library has it (uWebSockets.js issue 118).
      const listen = this.#app.listen as unknown as (
        host: string,
        port: number,
        options: number,
        callback: (token: us_listen_socket | false) => void,
      ) => void;
      listen.call(this.#app, host, port, reusePort ? sharedPort : exclusivePort, resolve);
    });
    if (token === false) throw await bindError(host, port);
    this.#listenSocket = token;
    this.bound = { host, port: this.#uws.us_socket_local_port(token as us_socket) };
    return this.bound;
  }

  stats(): { connections: number; sseReaders: number; webSockets: number } {
    const webSockets = this.#core.sockets.size;
    return { connections: this.#httpConnections + webSockets, sseReaders: this.#core.channels.readers, webSockets };
  }

  async pause(): Promise<void> {
    await acceptQueued(() => 0);
    this.#stopListening();
  }

  close(graceMs: number): Promise<void> {
    this.#closing ??= this.#close(graceMs);
    return this.#closing;
  }

  async #close(graceMs: number): Promise<void> {
    this.#stopListening();
    await this.#core.drain(graceMs);
    this.#app.close();
    this.#core.dispose();
  }

  #stopListening(): void {
    if (this.#listenSocket !== undefined) this.#uws.us_listen_socket_close(this.#listenSocket);
    this.#listenSocket = undefined;
  }
}
