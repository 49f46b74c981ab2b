import { Body, parseJson } from './body.ts';
import { type Header, HttpError } from './http-error.ts';
import { noParams, type Params } from './router.ts';
import { type SseChannels, sseHeaders } from './sse.ts';
import type { StreamHost } from './stream.ts';
import type {
  BodyAccount,
  BodyGate,
  Method,
  Reply,
  RequestContext,
  Schema,
  ServerOptions,
  SseSource,
} from './types.ts';

export type BytesReply = Extract<Reply, { kind: 'bytes' }>;
export type StreamReply = Extract<Reply, { kind: 'stream' }>;
export type PipeReply = Extract<Reply, { kind: 'pipe' }>;

/** Part of `Core` that an exchange uses. */
export interface ExchangeHost {
  readonly options: Pick<ServerOptions, 'limits'>;
  readonly channels: SseChannels;
  readonly streamHost: StreamHost;
  readonly bodyWindowMs: number;
  readonly draining: boolean;
  now(): number;
  bug(error: unknown): HttpError;
  errorReply(error: HttpError, path: string | undefined): BytesReply;
  withHeaders(own: readonly Header[], path: string | undefined): readonly Header[];
  streamOpened(): void;
  release(x: Exchange): void;
}

/** 20 kB/s: uWebSockets.js itself cuts a body slower than that after 8 to 12 s, without an answer. */
const bodyBytesPerMs = 20;

/**
 * One request and its one answer, shared by both adapters. `settled` turns true once, when the answer is given or
 * the client is gone; from then on nothing is written any more, and results of handlers are ignored.
 */
export abstract class Exchange implements RequestContext<never> {
  protected readonly core: ExchangeHost;
  readonly method: Method;
  readonly path: string;
  /** HEAD is routed as GET and answered without the body. */
  readonly head: boolean;
  params: Params = noParams;
  // The route's own `auth` made it and only the route's own handler reads it: the pair is typed together in `Route<P>`.
  principal = undefined as never;
  bodyLimit: number;
  settled = false;
  gone = false;
  /** Why the request is refused before it is routed. Its connection is closed: where it ends is uncertain. */
  fault: HttpError | undefined;
  /** When it is answered 503 (performance.now()), or 0. */
  dueAt = 0;
  protected body: Body | undefined;
  bodyGate: BodyGate | undefined;
  #account: BodyAccount | undefined;
  /** Answered by a body that its handler writes: the handler still wants to know when the client goes. */
  #isWriting = false;
  #abort: AbortController | undefined;

  constructor(core: ExchangeHost, method: Method, path: string, head: boolean) {
    this.core = core;
    this.method = method;
    this.path = path;
    this.head = head;
    this.bodyLimit = core.options.limits.bodyBytes;
  }

  abstract header(name: string): string | undefined;
  abstract get query(): URLSearchParams;
  abstract get remoteAddress(): string;
  /** Overridden where the adapter knows. */
  get peerUid(): RequestContext['peerUid'] {
    return undefined;
  }
  /** Writes the answer; this or `stream` is called at most once, never after the client has gone. */
  protected abstract transmit(reply: BytesReply, lastOnConnection: boolean): void;
  /** Writes the head of an event stream and adds a reader that begins with `history`. */
  protected abstract stream(source: SseSource, history: readonly Uint8Array[], headers: readonly Header[]): void;
  /** Writes the head of an answer and lets it be written. */
  protected abstract openStream(reply: StreamReply): void;
  /** Writes an answer whose body another stream delivers. */
  protected abstract openPipe(reply: PipeReply): void;
  /** Cuts the connection: the answer could not be written to its end. */
  protected abstract abandon(): void;
  /** Starts to feed `body`, or finishes it at once when the request has none. */
  protected abstract receive(body: Body): void;
  /** Makes the exchange outlive the turn it arrived in: copies the memory that the server library reuses. */
  abstract detach(): void;
  /** Waits for an admission, and leaves the body unread where the server library can. Returns a function that ends the wait. */
  abstract hold(): () => void;

  get signal(): AbortSignal {
    this.#abort ??= new AbortController();
    if (this.gone || (this.settled && !this.#isWriting)) this.#abort.abort();
    return this.#abort.signal;
  }

  bytes(): Promise<Uint8Array> {
    return this.openBody().bytes();
  }

  async json<T>(schema: Schema<T>): Promise<T> {
    return parseJson(await this.bytes(), schema);
  }

  protected openBody(): Body {
    if (this.body === undefined) {
      this.body = new Body(this.bodyLimit);
      this.body.windowStart = this.core.now();
      if (this.settled) this.body.fail(new HttpError(499, 'clientGone', 'The request is over.'));
      else {
        this.#account = this.bodyGate?.open(this, (error) => this.#refuse(error));
        this.receive(this.body);
        if (this.body.complete) this.#account?.complete();
      }
    }
    return this.body;
  }

  /** Receives each piece of the body, which the adapter has copied. */
  protected receiveChunk(chunk: Uint8Array, last: boolean): void {
    const { body } = this;
    if (body === undefined || body.failed) return;
    if (!body.push(chunk)) this.#refuse(tooLarge(this.bodyLimit));
    else {
      if (chunk.byteLength > 0) this.#account?.received(chunk.byteLength);
      if (last) this.finishBody();
    }
  }

  /** The body is whole. */
  protected finishBody(): void {
    this.#account?.complete();
    this.body?.finish();
  }

  #closeAccount(): void {
    this.#account?.close();
    this.#account = undefined;
  }

  /** Sends the answer, unless one was sent or the client has gone. Throws, unsettled, for an invalid reply. */
  answer(reply: Reply): void {
    if (this.settled) {
      if (reply.kind === 'pipe') reply.body.destroy();
      return;
    }
    const history = reply.kind === 'sse' ? reply.source.replay(reply.lastEventId) : [];
    this.settled = true;
    this.#closeAccount();
    this.#isWriting = (reply.kind === 'stream' || reply.kind === 'pipe') && !this.head;
    if (this.#isWriting) this.core.streamOpened();
    this.core.release(this);
    try {
      if (reply.kind === 'sse') this.stream(reply.source, history, this.core.withHeaders(sseHeaders, this.path));
      else {
        const headers = this.core.withHeaders(reply.headers, this.path);
        if (reply.kind === 'stream') this.openStream({ ...reply, headers });
        else if (reply.kind === 'pipe') this.#pipe({ ...reply, headers });
        else this.transmit(headers === reply.headers ? reply : { ...reply, headers }, this.core.draining);
      }
    } catch (error) {
      this.abandon();
      this.core.bug(error);
    }
  }

  #pipe(reply: PipeReply): void {
    if (!this.head) {
      this.openPipe(reply);
      return;
    }
    const { status, headers, body } = reply;
    body.destroy();
    this.transmit({ kind: 'bytes', status, headers, body: '' }, this.core.draining);
  }

  /** The client has gone: aborts the work for it. */
  leave(): void {
    this.gone = true;
    this.#closeAccount();
    if (!this.settled) {
      this.settled = true;
      this.core.release(this);
    }
    this.#cancel(new HttpError(499, 'clientGone', 'The client closed the connection.'));
  }

  /** Called every so often while the exchange is pending. */
  tick(now: number): void {
    if (this.dueAt !== 0 && now >= this.dueAt) {
      this.#refuse(
        new HttpError(
          503,
          'deadlineExceeded',
          'The request was not finished in time; the work that it started continues.',
        ),
      );
      return;
    }
    const { body } = this;
    if (body === undefined || body.complete || body.failed) return;
    if (this.bodyGate !== undefined && body.isEmpty && now - body.windowStart >= this.bodyGate.firstByteMs) {
      this.#refuse(new HttpError(408, 'requestTimeout', 'The body did not begin in time.'));
      return;
    }
    const elapsed = now - body.windowStart;
    if (elapsed < this.core.bodyWindowMs) return;
    if (body.windowBytes < elapsed * bodyBytesPerMs) {
      this.#refuse(new HttpError(408, 'requestTimeout', 'The body did not arrive in time.'));
      return;
    }
    body.windowStart = now;
    body.windowBytes = 0;
  }

  #refuse(error: HttpError): void {
    this.answer(this.core.errorReply(error, this.path));
    this.#cancel(error);
  }

  #cancel(error: HttpError): void {
    this.body?.fail(error);
    this.#abort?.abort(error);
  }
}

export function tooLarge(limit: number): HttpError {
  return new HttpError(413, 'payloadTooLarge', `The body is larger than ${limit} bytes.`, { limit });
}
