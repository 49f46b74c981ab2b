import type { Readable } from 'node:stream';
import type { BaseIssue, BaseSchema } from 'valibot';
import type { ListenAddress } from '../lib/index.ts';
import type { HttpError } from './http-error.ts';

/** HTTP methods a route may answer. */
export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** Anything a handler can be validated with. */
export type Schema<T> = BaseSchema<unknown, T, BaseIssue<unknown>>;

/**
 * One request as a handler sees it. Everything is copied out of the server library before the handler runs,
 * so a context stays valid after any `await`. Values that cost something are computed on first use.
 */
export interface RequestContext<P = unknown> {
  readonly method: Method;
  /** Path without the query string, percent-encoding untouched. */
  readonly path: string;
  /** Values of `:name` segments and of a trailing `*`, percent-decoded. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** Header by lower-case name, or undefined. */
  header(name: string): string | undefined;
  /** Empty once the client has gone, unless it was read before. */
  readonly remoteAddress: string;
  /**
   * Uid of the process at the other end of a loopback connection; undefined where it cannot be known: for another machine,
   * outside Linux, and on uWebSockets.js, which hides the port of the peer. Ask for the `node` adapter to have it. A promise
   * while the kernel is asked; `busy` when too many connections wait for that.
   */
  readonly peerUid?: number | undefined | 'busy' | Promise<number | undefined>;
  /** Result of the route's `auth`. */
  readonly principal: P;
  /** Aborts when the client has gone or the request's deadline has passed. */
  readonly signal: AbortSignal;
  /** The whole body. Rejects with `HttpError` 413 past the route's limit. */
  bytes(): Promise<Uint8Array>;
  /** The body as JSON, validated. Rejects with the error that `ServerOptions.errors` makes of a bad body. */
  json<T>(schema: Schema<T>): Promise<T>;
}

/** Answer of a handler. Build it with the functions of `reply.ts`, never by hand. */
export type Reply =
  | {
      readonly kind: 'bytes';
      readonly status: number;
      readonly headers: readonly (readonly [string, string])[];
      readonly body: Uint8Array | string;
    }
  | { readonly kind: 'sse'; readonly source: SseSource; readonly lastEventId: string | undefined }
  | {
      readonly kind: 'stream';
      readonly status: number;
      readonly headers: readonly (readonly [string, string])[];
      /** Called once, after the headers; never for HEAD. Bytes that it writes at once leave together with them. */
      readonly open: (stream: ReplyStream) => void;
    }
  | {
      readonly kind: 'pipe';
      readonly status: number;
      readonly headers: readonly (readonly [string, string])[];
      /** Read at the pace of the client, and destroyed when the client goes. An error of it cuts the connection. */
      readonly body: Readable;
    };

/**
 * The body of an answer that its handler writes in pieces. The pieces of one turn of the event loop go out as one
 * write. A client that leaves more than `limits.sseBufferBytes` characters unread is disconnected. When the client has gone
 * the request's `signal` aborts, and later pieces are ignored. A newline may be put between two writes.
 */
export interface ReplyStream {
  write(text: string): void;
  /** Ends the answer after the written bytes. */
  end(): void;
  /** Ends the connection at once: the client sees that the answer is not whole. */
  cut(): void;
}

/** Where an SSE stream gets its records: the event log of the domain, already serialised. */
export interface SseSource {
  /** Frames to send at once to a reader that last saw `lastEventId` (undefined: a new reader), oldest first. */
  replay(lastEventId: string | undefined): readonly Uint8Array[];
  /**
   * Calls `listener` with each batch of frames appended from now on. A batch holds every event of one tick already
   * joined into one buffer. `replay` followed by `subscribe` in the same synchronous turn misses and repeats nothing.
   * `onEnd` is called when the source is finished: readers then get the queued events and their stream is closed.
   * Both first hand over the undelivered events to the earlier listeners: one listener may so serve many readers,
   * each of which is added right after its own `replay`.
   */
  subscribe(listener: (batch: Uint8Array) => void, onEnd: () => void): () => void;
}

/** Decides who a request is before anything of its body is read. Throws `HttpError` (401) to refuse. */
export type Authenticate<P> = (request: Pick<RequestContext, 'header' | 'query' | 'path' | 'method' | 'peerUid'>) => P;

/** Like `Authenticate`, but may wait before it decides. The body is not read until then. A rejection refuses the request. */
export type LateAuthenticate<P> = (request: Parameters<Authenticate<P>>[0]) => P | Promise<P>;

/** Bytes of a `BodyGate` that one body has used. */
export interface BodyAccount {
  /** So many bytes more have been received. It may refuse this or another body. */
  received(bytes: number): void;
  /** The body is whole. */
  complete(): void;
  /** The request is answered or its client is gone: its bytes are freed. Called once. */
  close(): void;
}

/** Bounds the unfinished bodies of a route together. Bodies below `bodyLimit` only count while they arrive. */
export interface BodyGate {
  /** A body whose first byte does not come within this many milliseconds is answered 408. */
  readonly firstByteMs: number;
  /** A body begins to arrive. `refuse` answers its request with an error, unless it is answered already. */
  open(request: Pick<RequestContext, 'header' | 'remoteAddress'>, refuse: (error: HttpError) => void): BodyAccount;
}

export interface Route<P = unknown> {
  readonly method: Method;
  /** `/v1/things/:id`, `/assets/*`, or a literal path. */
  readonly path: string;
  /** Path whose literal segments match in any case; values of `:name` and `*` keep theirs. */
  readonly ignoreCase?: boolean;
  /** Absent: open to everybody. */
  readonly auth?: LateAuthenticate<P>;
  /** Bytes; default `ServerOptions.limits.bodyBytes`. */
  readonly bodyLimit?: number;
  readonly bodyGate?: BodyGate;
  /** Milliseconds until the request is answered 503; default `ServerOptions.limits.deadlineMs`; 0 means none. */
  readonly deadlineMs?: number;
  /** A synchronous return is answered without a promise: use it on hot paths. */
  readonly handler: (context: RequestContext<P>) => Reply | Promise<Reply>;
}

/** One accepted WebSocket. `send` never blocks: past `WebSocketRoute.maxBufferedBytes` the socket is closed with 1013. */
export interface Socket<P = unknown> {
  readonly principal: P;
  readonly remoteAddress: string;
  /** Bytes accepted by `send` and not yet handed to the kernel. */
  readonly bufferedBytes: number;
  send(text: string): void;
  close(code: number, reason: string): void;
}

/** A handshake after its admission; valid while `prepare` works. */
export type Handshake = Pick<RequestContext, 'path' | 'query' | 'header' | 'signal'>;

export interface WebSocketRoute<P = unknown> {
  /** Like `auth` of a route. */
  readonly path: string;
  readonly auth: Authenticate<P>;
  /** The subprotocol that is answered to a client that offers it. */
  readonly subprotocol?: string;
  /**
   * Called after `auth`, before the handshake is answered: its result takes the place of the principal. Rejects with
   * `HttpError` to refuse. `close` is called for each result, also when the client has gone meanwhile and no socket opens.
   */
  readonly prepare?: (request: Handshake, principal: unknown) => Promise<{ readonly principal: P; close(): void }>;
  /** A longer frame closes the socket with 1009. */
  readonly maxPayloadBytes: number;
  readonly maxBufferedBytes: number;
  readonly open: (socket: Socket<P>) => void;
  readonly message: (socket: Socket<P>, text: string) => void;
  readonly close: (socket: Socket<P>, code: number, reason: string) => void;
  /** The kernel has taken bytes that waited. */
  readonly drain?: (socket: Socket<P>) => void;
}

/** Handles a request without authentication. */
export type Handler = (context: RequestContext<never>) => Reply | Promise<Reply>;

/** A route with any principal, as an element of a list. */
export type AnyRoute = Omit<Route<never>, 'auth'> & { readonly auth?: Authenticate<unknown> };
export type AnyWebSocketRoute = Omit<WebSocketRoute<never>, 'auth' | 'prepare'> & {
  readonly auth: Authenticate<unknown>;
  readonly prepare?: WebSocketRoute<unknown>['prepare'];
};

/** Turns a refusal into the body of this server's error contract. */
export type ErrorBody = (error: {
  status: number;
  code: string;
  message: string;
  details: unknown;
  /** Address of the request; undefined when it could not be read. */
  path: string | undefined;
}) => unknown;

/**
 * Judges a request before it is routed, unknown paths and methods included. Throws, or rejects with, `HttpError` to refuse it: a
 * caller passes the promise on.
 */
export type Guard = (request: Pick<RequestContext, 'header' | 'path' | 'peerUid'>) => undefined | Promise<undefined>;

export interface ServerOptions {
  readonly routes: readonly AnyRoute[];
  readonly webSockets?: readonly AnyWebSocketRoute[];
  /**
   * Host header values that are served; anything else is answered 403 before routing. Called with the lower-cased header; its
   * answer for a value does not change.
   */
  readonly hostAllowed: (host: string) => boolean;
  /** Called after the Host header was judged, for everything but WebSockets. */
  readonly guard?: Guard;
  /** Whether `guard` or an `auth` reads `peerUid`: its look-up then begins with the connection. */
  readonly readsPeerUid?: boolean;
  /**
   * Headers of every answer to a path, refusals and event streams included; a header of the answer itself
   * wins. The path is undefined for bytes that never became a request. Build them once: this is called for every answer.
   */
  readonly headers?: (path: string | undefined) => readonly (readonly [string, string])[];
  readonly errorBody: ErrorBody;
  /** A handler threw something that is not an `HttpError`: it is answered 500 with `errorId`, and reported here. */
  readonly onBug: (error: unknown, errorId: string) => void;
  readonly limits: {
    readonly bodyBytes: number;
    readonly deadlineMs: number;
    /** Pending bytes of one SSE reader past which it is disconnected (it resumes by id). */
    readonly sseBufferBytes: number;
    readonly sseHeartbeatMs: number;
    /** Reconnection delay for SSE clients (`retry:`). */
    readonly sseRetryMs: number;
    /** A body that brings less than 20 kB/s over this many milliseconds is answered 408; default 5000, at most 7000 (uWebSockets.js cuts it after 8 s). */
    readonly bodyWindowMs?: number;
    /** Milliseconds between the pings of WebSockets; one that did not answer the last is ended. Default 30000. */
    readonly pingMs?: number;
  };
}

export interface HttpServer {
  readonly adapter: 'uws' | 'node';
  /** Library that serves, with its version: `uWebSockets.js 20.57.0`, `node:http`. */
  readonly library: string;
  /** Where it listens, once it does. */
  readonly bound: ListenAddress | undefined;
  /**
   * Binds exclusively, or with `reusePort` beside another process of this user that does so, too (SO_REUSEPORT). Rejects with an Error
   * whose `code` is EADDRINUSE, EACCES or EADDRNOTAVAIL.
   */
  listen(address: ListenAddress, reusePort?: boolean): Promise<ListenAddress>;
  /**
   * Stops accepting, after the connections that the kernel has queued; open connections continue. `listen` at the same address accepts
   * again.
   */
  pause(): Promise<void>;
  /** Connections open now: all of them, SSE readers, WebSockets. */
  stats(): { connections: number; sseReaders: number; webSockets: number };
  /** Stops accepting, lets requests in flight finish for `graceMs`, ends SSE streams after their queued frames, then closes the rest. */
  close(graceMs: number): Promise<void>;
}
