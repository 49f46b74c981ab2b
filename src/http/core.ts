import { randomBytes } from 'node:crypto';
import { isMissingPart } from '../lib/index.ts';
import { missingRoute } from '../protocol/index.ts';
import { type Exchange, tooLarge } from './exchange.ts';
import { isForeign } from './hosts.ts';
import { type Header, HttpError } from './http-error.ts';
import { json } from './reply.ts';
import { type AnyRoute, type AnyWebSocketRoute, noParams, type Resource, Router } from './router.ts';
import { Sockets } from './sockets.ts';
import { SseChannels } from './sse.ts';
import { Flusher, type StreamHost } from './stream.ts';
import { offeredSubprotocols } from './subprotocols.ts';
import type { Method, Reply, RequestContext, ServerOptions } from './types.ts';

const isReading = (method: Method) => method === 'GET';

/**
 * Processes a request for both adapters, in the order of the contract: framing, Host, route and method, auth, origin, length,
 * handler. Also tracks pending requests, so that deadlines, slow bodies and a graceful close need no timer per request.
 */
export class Core {
  readonly options: ServerOptions;
  readonly router: Router;
  readonly channels: SseChannels;
  readonly sockets: Sockets;
  readonly streamHost: StreamHost;
  /** Answers that are being written. */
  #streams = 0;
  readonly bodyWindowMs: number;
  draining = false;
  /** The last Host header that was allowed: most requests of a server have the same one. */
  #allowedHost: string | undefined;
  readonly #pending = new Set<Exchange>();
  readonly #sweepMs: number;
  #sweeper: NodeJS.Timeout | undefined;
  #whenIdle: (() => void) | undefined;

  constructor(options: ServerOptions) {
    this.options = options;
    this.router = new Router(options.routes, options.webSockets ?? []);
    this.channels = new SseChannels(options.limits, () => this.#checkIdle());
    this.sockets = new Sockets(options, () => this.#checkIdle());
    this.streamHost = {
      flusher: new Flusher(),
      bufferLimit: options.limits.sseBufferBytes,
      onOver: () => {
        this.#streams -= 1;
        this.#checkIdle();
      },
    };
    this.bodyWindowMs = Math.min(options.limits.bodyWindowMs ?? 5_000, 7_000);
    const deadlines = options.routes
      .map((route) => route.deadlineMs ?? options.limits.deadlineMs)
      .filter((ms) => ms > 0);
    const firstBytes = options.routes.flatMap(({ bodyGate }) => (bodyGate === undefined ? [] : [bodyGate.firstByteMs]));
    const paces = [...deadlines, ...firstBytes, this.bodyWindowMs];
    this.#sweepMs = Math.max(5, Math.min(250, ...paces.map((ms) => ms / 8)));
  }

  now(): number {
    return performance.now();
  }

  /** Serves `x`; `resource` is given when the adapter has routed it already. Never throws. */
  serve(x: Exchange, resource?: Resource): void {
    try {
      if (x.fault !== undefined) throw x.fault;
      const host = this.#checkHost(x);
      this.#after(x, this.options.guard?.(x), () => this.#serveGuarded(x, host, resource));
    } catch (error) {
      this.fail(x, error);
    }
  }

  #serveGuarded(x: Exchange, host: string, resource: Resource | undefined): void {
    const found = resource === undefined ? this.router.find(x.path) : { resource, params: noParams };
    if (found === undefined) throw new HttpError(404, 'notFound', missingRoute);
    x.params = found.params;
    const route = this.#routeFor(x.method, found.resource);
    this.#after(x, route.auth?.(x), (principal) => {
      // The route's `auth` and `handler` share the type that `Route<P>` bound and the table of routes forgot.
      if (route.auth !== undefined) x.principal = principal as never;
      if (!isReading(x.method)) this.#checkSender(x, host, route);
      this.#run(x, route);
    });
  }

  /** Continues once a guard or an `auth` has decided. A rejection is the answer; a client that goes meanwhile gets none. */
  #after<T>(x: Exchange, decision: T | Promise<T>, proceed: (value: T) => void): void {
    if (!(decision instanceof Promise)) {
      proceed(decision);
      return;
    }
    x.dueAt = this.now() + this.options.limits.deadlineMs;
    this.#track(x);
    const endWait = x.hold();
    decision
      .finally(endWait)
      .then((value) => {
        x.dueAt = 0;
        if (!x.settled) proceed(value);
      })
      .catch((error: unknown) => this.fail(x, error));
  }

  /** A method no route can have. */
  serveUnknownMethod(x: Exchange): void {
    try {
      if (x.fault !== undefined) throw x.fault;
      this.#checkHost(x);
      this.#after(x, this.options.guard?.(x), () => {
        const found = this.router.find(x.path);
        if (found === undefined) throw new HttpError(404, 'notFound', missingRoute);
        throw methodNotAllowed(found.resource);
      });
    } catch (error) {
      this.fail(x, error);
    }
  }

  /**
   * Decides about a WebSocket handshake, in the order of the contract: Host, origin, auth. Throws HttpError to refuse it.
   * Returns the principal of `auth`.
   */
  admitSocket(request: Parameters<AnyWebSocketRoute['auth']>[0], route: AnyWebSocketRoute): never {
    const host = this.#checkHost(request);
    if (isForeign(host, request.header('sec-fetch-site'), request.header('origin'))) throw originNotAllowed();
    const principal = route.auth(request) as never;
    if ((principal as unknown) instanceof Promise) throw new TypeError('The auth of a WebSocket must decide at once.');
    if (this.draining) throw new HttpError(503, 'deadlineExceeded', 'The server is shutting down.');
    return principal;
  }

  /** The subprotocol that answers a handshake; '' for none. */
  subprotocolOf(route: AnyWebSocketRoute, header: string | undefined): string {
    const { subprotocol } = route;
    return subprotocol !== undefined && offeredSubprotocols(header).includes(subprotocol) ? subprotocol : '';
  }

  #checkHost(request: Pick<RequestContext, 'header'>): string {
    const host = request.header('host') ?? '';
    if (host === this.#allowedHost) return host;
    if (!this.options.hostAllowed(host.toLowerCase())) {
      throw new HttpError(403, 'hostNotAllowed', 'The Host header names a host this server does not serve.');
    }
    this.#allowedHost = host;
    return host;
  }

  #routeFor(method: Method, resource: Resource): AnyRoute {
    const route = resource.methods.get(method);
    if (route !== undefined) return route;
    if (method !== 'GET' || resource.webSocket === undefined) throw methodNotAllowed(resource);
    throw new HttpError(426, 'upgradeRequired', 'This path speaks WebSocket only.', {}, [
      ['upgrade', 'websocket'],
      ['connection', 'upgrade'],
    ]);
  }

  #checkSender(x: Exchange, host: string, route: AnyRoute): void {
    if (isForeign(host, x.header('sec-fetch-site'), x.header('origin'))) throw originNotAllowed();
    const limit = route.bodyLimit ?? this.options.limits.bodyBytes;
    x.bodyLimit = limit;
    if (Number(x.header('content-length') ?? 0) > limit) throw tooLarge(limit);
  }

  #run(x: Exchange, route: AnyRoute): void {
    x.bodyGate = route.bodyGate;
    const outcome = route.handler(x);
    if (!(outcome instanceof Promise)) {
      x.answer(outcome);
      return;
    }
    if (x.settled) {
      outcome.catch((error: unknown) => this.fail(x, error));
      return;
    }
    const deadlineMs = route.deadlineMs ?? this.options.limits.deadlineMs;
    if (deadlineMs > 0) x.dueAt = this.now() + deadlineMs;
    this.#track(x);
    x.detach();
    outcome.then(
      (reply) => this.#settle(x, reply),
      (error: unknown) => this.fail(x, error),
    );
  }

  #settle(x: Exchange, reply: Reply): void {
    try {
      x.answer(reply);
    } catch (error) {
      this.fail(x, error);
    }
  }

  /** Answers with the error. Never throws. */
  fail(x: Exchange, error: unknown): void {
    try {
      if (x.settled && (error instanceof HttpError || isAbort(error))) return;
      const refusal = error instanceof HttpError ? error : this.bug(error);
      x.answer(this.errorReply(refusal, x.path));
    } catch (nested) {
      this.bug(nested);
    }
  }

  /** Reports a bug and returns the error for the client. Never throws. */
  bug(error: unknown): HttpError {
    const errorId = randomBytes(8).toString('hex');
    try {
      this.options.onBug(error, errorId);
    } catch {
      // A reporter that throws must not end the server, and no further reporter exists.
    }
    const message = isMissingPart(error)
      ? 'Oratorio was updated. Restart an agent server with `oratorio restart`, the Hub with `oratorio hub stop --detach`.'
      : `Internal error ${errorId}.`;
    return new HttpError(500, 'internalError', message, { errorId });
  }

  /** The error as this server's contract words it. Never throws. */
  errorReply(error: HttpError, path: string | undefined): Extract<Reply, { kind: 'bytes' }> {
    const { status, code, message, details, headers } = error;
    try {
      return json(status, this.options.errorBody({ status, code, message, details, path }), headers);
    } catch (nested) {
      this.bug(nested);
      return json(500, { error: { code: 'internalError', message: 'Internal error.', details: {} } });
    }
  }

  /** The headers of an answer, and those that every answer to this path has. */
  withHeaders(own: readonly Header[], path: string | undefined): readonly Header[] {
    const common = this.options.headers?.(path);
    if (common === undefined || common.length === 0) return own;
    return [...own, ...common.filter((header) => !own.some((each) => each[0] === header[0]))];
  }

  /** An answer begins that ends with `streamHost.onOver`. */
  streamOpened(): void {
    this.#streams += 1;
  }

  #track(x: Exchange): void {
    this.#pending.add(x);
    if (this.#sweeper === undefined) this.#startSweeper();
  }

  release(x: Exchange): void {
    if (this.#pending.delete(x) && this.#pending.size === 0) this.#checkIdle();
  }

  #startSweeper(): void {
    this.#sweeper = setInterval(() => {
      const now = this.now();
      for (const x of this.#pending) x.tick(now);
      if (this.#pending.size > 0) return;
      clearInterval(this.#sweeper);
      this.#sweeper = undefined;
    }, this.#sweepMs);
    this.#sweeper.unref();
  }

  #checkIdle(): void {
    if (this.#whenIdle === undefined) return;
    if (this.#pending.size + this.#streams + this.channels.readers + this.sockets.size === 0) this.#whenIdle();
  }

  /** Lets connections and streams end: resolves when all have ended, or after `graceMs`. */
  async drain(graceMs: number): Promise<void> {
    this.draining = true;
    // Data appended in this very turn still has to reach its readers before they are ended.
    await new Promise((resolve) => setImmediate(resolve));
    const idle = new Promise<void>((resolve) => {
      this.#whenIdle = resolve;
    });
    this.channels.end();
    this.sockets.end();
    this.#checkIdle();
    let timer: NodeJS.Timeout | undefined;
    const grace = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, graceMs);
    });
    await Promise.race([idle, grace]);
    clearTimeout(timer);
    this.#whenIdle = undefined;
  }

  /** After the connections have been closed by force. */
  dispose(): void {
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
    this.channels.dispose();
    this.sockets.dispose();
  }
}

const isAbort = (error: unknown) => error instanceof Error && error.name === 'AbortError';

function originNotAllowed(): HttpError {
  return new HttpError(403, 'originNotAllowed', 'The request comes from a page of another origin.');
}

function methodNotAllowed(resource: Resource): HttpError {
  return new HttpError(405, 'methodNotAllowed', `This route answers ${resource.allow}.`, {}, [
    ['allow', resource.allow],
  ]);
}
