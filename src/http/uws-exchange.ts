import type { HttpRequest, HttpResponse } from 'uWebSockets.js';
import type { Body } from './body.ts';
import type { Core } from './core.ts';
import { type BytesReply, Exchange, type PipeReply, type StreamReply } from './exchange.ts';
import type { Header } from './http-error.ts';
import { isBodiless, statusLine } from './status.ts';
import type { Method, SseSource } from './types.ts';
import { type Head, readHead, readHeaders } from './uws-head.ts';
import { UwsPipe } from './uws-pipe.ts';
import { UwsReader, watchReader } from './uws-sse.ts';
import { UwsWriter } from './uws-stream.ts';

/** How long a client that sends too much is read on, so that the answer reaches it before the connection is reset. */
const lingerMs = 1_000;
/** Size of the buffer in which uWebSockets.js gathers the answers of one turn. */
const corkBytes = 16_384;

const addressText = (buffer: ArrayBuffer): string => {
  const octets = [...new Uint8Array(buffer)];
  if (octets.length === 4) return octets.join('.');
  const groups: string[] = [];
  for (let index = 0; index < octets.length; index += 2) {
    groups.push((((octets[index] ?? 0) << 8) | (octets[index + 1] ?? 0)).toString(16));
  }
  return groups.join(':');
};

/**
 * `body` with blanks after it, longer than the library's buffer. `end(…, true)` closes a connection only after the bytes that were
 * received together with the request has been served; an answer that overflows the buffer closes it at once.
 */
const padded = (body: Uint8Array | string): string =>
  Buffer.from(body)
    .toString()
    .padEnd(corkBytes + 1);

/**
 * One request of uWebSockets.js. While its handler runs synchronously everything is read straight from the library;
 * `detach` copies it all when the handler turns out to be asynchronous, because the request object dies with the turn.
 */
export class UwsExchange extends Exchange implements Head {
  host = '';
  authorization = '';
  #res: HttpResponse;
  #req: HttpRequest | undefined;
  #headers: Map<string, string> | undefined;
  #queryText: string | undefined;
  #query: URLSearchParams | undefined;
  #address: ArrayBuffer | undefined;
  #lingering: NodeJS.Timeout | undefined;

  constructor(core: Core, method: Method, path: string, head: boolean, res: HttpResponse, req: HttpRequest) {
    super(core, method, path, head);
    this.#res = res;
    this.#req = req;
    const targetBytes = path.length + (req.getQuery()?.length ?? 0);
    if (method === 'GET') {
      this.fault = readHead(req, targetBytes, this);
    } else {
      // An answer with a body is nearly always asynchronous: all headers at once cost less than one by one and again.
      this.#headers = new Map();
      this.fault = readHeaders(req, targetBytes, this, this.#headers);
    }
  }

  /** An empty header counts as absent: uWebSockets.js cannot distinguish them. */
  header(name: string): string | undefined {
    if (name === 'host') return this.host || undefined;
    if (name === 'authorization') return this.authorization || undefined;
    if (this.#headers !== undefined) return this.#headers.get(name);
    return this.#req?.getHeader(name) || undefined;
  }

  get query(): URLSearchParams {
    this.#query ??= new URLSearchParams(this.#req === undefined ? this.#queryText : this.#req.getQuery());
    return this.#query;
  }

  get remoteAddress(): string {
    if (this.#address === undefined && !this.settled) this.#address = this.#res.getRemoteAddress();
    return this.#address === undefined ? '' : addressText(this.#address);
  }

  detach(): void {
    const req = this.#req;
    if (req === undefined) return;
    if (this.#headers === undefined) {
      this.#headers = new Map();
      readHeaders(req, 0, this, this.#headers);
    }
    this.#queryText = req.getQuery() ?? '';
    this.#res.onAborted(() => this.leave());
    // Chunks that arrive without a listener are lost, so the body is gathered before a handler asks for it.
    if (this.#hasBody()) this.openBody();
    this.#req = undefined;
  }

  /** Gathers the body within the limits of the server: the library loses pieces without a listener. No guard waits here (`peerUid`). */
  hold(): () => void {
    this.detach();
    return () => {};
  }

  #hasBody(): boolean {
    return (this.header('content-length') ?? '0') !== '0' || this.header('transfer-encoding') !== undefined;
  }

  /** The turn of the request is over: its object must not be touched again. */
  endTurn(): void {
    this.#req = undefined;
  }

  protected receive(body: Body): void {
    if (!this.#hasBody()) {
      body.finish();
    } else {
      this.#res.onData((chunk, last) => {
        if (this.#lingering === undefined) this.receiveChunk(Buffer.from(new Uint8Array(chunk)), last);
        else if (last) this.#stopLingering();
      });
    }
  }

  override leave(): void {
    clearTimeout(this.#lingering);
    super.leave();
  }

  protected transmit(reply: BytesReply, lastOnConnection: boolean): void {
    // Inside the turn of the request the library has corked the socket already.
    if (this.#req !== undefined) this.#write(reply, lastOnConnection);
    else this.#res.cork(() => this.#write(reply, lastOnConnection));
  }

  protected stream(source: SseSource, history: readonly Uint8Array[], headers: readonly Header[]): void {
    if (this.#req !== undefined) this.#stream(source, history, headers);
    else this.#res.cork(() => this.#stream(source, history, headers));
  }

  protected openStream(reply: StreamReply): void {
    if (this.#req !== undefined) this.#openStream(reply);
    else this.#res.cork(() => this.#openStream(reply));
  }

  protected abandon(): void {
    if (!this.gone) this.#res.close();
  }

  #write(reply: BytesReply, lastOnConnection: boolean): void {
    const res = this.#res;
    const { status } = reply;
    if (status !== 200) res.writeStatus(statusLine(status));
    for (const header of reply.headers) res.writeHeader(header[0], header[1]);
    if (this.fault !== undefined) {
      res.end(padded(reply.body), true);
      return;
    }
    if (status === 413 && this.#linger(reply.body)) return;
    const last = lastOnConnection || status === 408;
    if (this.head || isBodiless(status)) {
      if (!isBodiless(status)) res.writeHeader('content-length', String(Buffer.byteLength(reply.body)));
      if (last) res.writeHeader('connection', 'close');
      // Never with arguments: a length leaves the request pending for ever, and then the process aborts.
      res.endWithoutBody();
    } else res.end(reply.body, last);
  }

  #stream(source: SseSource, history: readonly Uint8Array[], headers: readonly Header[]): void {
    const res = this.#res;
    for (const [name, value] of headers) res.writeHeader(name, value);
    if (this.head) {
      res.endWithoutBody();
      return;
    }
    const reader = new UwsReader(res);
    watchReader(reader, res);
    this.core.channels.join(source, history, reader);
  }

  #openStream({ status, headers, open }: StreamReply): void {
    const res = this.#res;
    if (status !== 200) res.writeStatus(statusLine(status));
    for (const [name, value] of headers) res.writeHeader(name, value);
    if (this.core.draining) res.writeHeader('connection', 'close');
    if (this.head) {
      res.endWithoutBody();
      return;
    }
    const writer = new UwsWriter(this.core.streamHost, res);
    res.onAborted(() => {
      writer.gone();
      this.leave();
    });
    res.onWritable(() => {
      writer.writable();
      return true;
    });
    open(writer);
    writer.begin();
  }

  protected openPipe(reply: PipeReply): void {
    const res = this.#res;
    const { status, headers } = reply;
    const head = () => {
      if (status !== 200) res.writeStatus(statusLine(status));
      for (const [name, value] of headers) res.writeHeader(name, value);
      if (this.core.draining) res.writeHeader('connection', 'close');
    };
    const writer = new UwsPipe(this.core.streamHost, reply, { res, head });
    res.onAborted(() => {
      writer.gone();
      this.leave();
    });
    res.onWritable(() => {
      writer.writable();
      return true;
    });
    writer.begin();
  }

  /**
   * A connection closed with unread bytes in it is reset, and the reset can overtake the answer. So the answer goes out
   * now, and the end of it when the client has stopped sending, or after a moment.
   */
  #linger(body: Uint8Array | string): boolean {
    if (!this.#hasBody()) return false;
    const res = this.#res;
    res.writeHeader('connection', 'close');
    res.write(body);
    this.#lingering = setTimeout(() => this.#stopLingering(), lingerMs);
    if (this.#req !== undefined) {
      res.onAborted(() => this.leave());
      res.onData((_chunk, last) => {
        if (last) this.#stopLingering();
      });
    }
    return true;
  }

  #stopLingering(): void {
    clearTimeout(this.#lingering);
    if (this.gone || this.#lingering === undefined) return;
    this.gone = true;
    // Not `end(…, true)`: after a `write` it puts its Connection header into the body. The client got `connection: close`.
    this.#res.cork(() => this.#res.end());
  }
}
