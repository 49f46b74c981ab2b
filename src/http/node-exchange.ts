import type { IncomingMessage, OutgoingHttpHeader, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Body } from './body.ts';
import type { Core } from './core.ts';
import { type BytesReply, Exchange, type PipeReply, type StreamReply } from './exchange.ts';
import { framingFault } from './framing.ts';
import { type Header, HttpError } from './http-error.ts';
import { methods } from './methods.ts';
import { peerUidOf } from './peer-owner.ts';
import { PipeWriter } from './pipe.ts';
import { SseReader } from './sse.ts';
import { isBodiless, statusLine } from './status.ts';
import { type StreamHost, StreamWriter } from './stream.ts';
import type { RequestContext, SseSource } from './types.ts';

/** The idle time-out that uWebSockets.js has compiled in; both adapters keep to it. */
export const idleMs = 10_000;
/** Longest time to read on from a client that continues to send after its answer, before the connection is cut. */
const lingerMs = 1_000;

/** HTTP/1.0 needs no Host header. The header guards against pages in a browser, and browsers send HTTP/1.1. */
const hostOfOld = (req: IncomingMessage): string | undefined => (req.httpVersion === '1.0' ? 'localhost' : undefined);

const absoluteForm = /^https?:\/\/([^/?#@]*)((?:[/?@][^#]*)?)$/i;

/** A target in origin-form, and the authority it was given with. */
function targetOf(url: string): { authority: string | undefined; target: string } {
  const [, authority, rest = ''] = absoluteForm.exec(url) ?? [];
  if (authority === undefined) return { authority, target: url };
  return { authority, target: rest.startsWith('/') ? rest : `/${rest}` };
}

function faultOf(req: IncomingMessage): HttpError | undefined {
  const { rawHeaders } = req;
  const valuesOf = (wanted: string): string[] =>
    rawHeaders.filter((_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === wanted);
  const codings = valuesOf('transfer-encoding');
  if (codings.length > 0 && req.httpVersion === '1.0')
    return new HttpError(400, 'invalidRequest', 'HTTP/1.0 has no Transfer-Encoding.');
  const hosts = valuesOf('host').length;
  return framingFault({ hosts, lengths: valuesOf('content-length'), codings });
}

/** Requests of a connection that wait for their admission. */
const held = new WeakMap<Socket, number>();

/** A client that has ended its direction counts as gone, unless a request of it still waits for its admission. */
export function endUnlessHeld(this: Socket): void {
  if (!held.get(this)) this.end();
}

export class NodeExchange extends Exchange {
  readonly #req: IncomingMessage;
  readonly #res: ServerResponse;
  readonly #queryText: string;
  /** Authority of an absolute-form target: it replaces the Host header (RFC 9112, section 3.2.2). */
  readonly #authority: string | undefined;
  #query: URLSearchParams | undefined;
  #isWatched = false;

  constructor(core: Core, req: IncomingMessage, res: ServerResponse) {
    const { authority, target } = targetOf(req.url ?? '/');
    const mark = target.indexOf('?');
    super(
      core,
      methods.get(req.method ?? '') ?? 'GET',
      mark < 0 ? target : target.slice(0, mark),
      req.method === 'HEAD',
    );
    this.#req = req;
    this.#res = res;
    this.#queryText = mark < 0 ? '' : target.slice(mark + 1);
    this.#authority = authority;
    this.fault = faultOf(req);
  }

  header(name: string): string | undefined {
    if (name === 'host') return this.#authority ?? this.#req.headers.host ?? hostOfOld(this.#req);
    const value = this.#req.headers[name];
    return (Array.isArray(value) ? value.join(', ') : value) || undefined;
  }

  get query(): URLSearchParams {
    this.#query ??= new URLSearchParams(this.#queryText);
    return this.#query;
  }

  get remoteAddress(): string {
    return this.#req.socket.remoteAddress ?? '';
  }

  override get peerUid(): RequestContext['peerUid'] {
    return peerUidOf(this.#req.socket);
  }

  detach(): void {
    this.#watch();
    const { socket } = this.#req;
    // For work that takes time, a client that ended its direction counts as gone. `endUnlessHeld` passed over it during an admission.
    if (socket.readableEnded) setImmediate(() => this.settled || socket.end());
    this.openBody();
  }

  hold(): () => void {
    this.#watch();
    const { socket } = this.#req;
    const change = (by: number) => held.set(socket, (held.get(socket) ?? 0) + by);
    change(1);
    return () => change(-1);
  }

  #watch(): void {
    if (this.#isWatched) return;
    this.#isWatched = true;
    this.#res.once('close', () => {
      if (!this.#res.writableFinished) this.leave();
    });
  }

  protected receive(body: Body): void {
    const req = this.#req;
    if (req.complete && req.readableLength === 0) {
      body.finish();
      return;
    }
    req.on('data', (chunk: Buffer) => this.receiveChunk(chunk, false));
    req.once('end', () => this.finishBody());
    req.once('error', () => this.leave());
  }

  protected abandon(): void {
    this.#req.socket.destroy();
  }

  protected transmit(reply: BytesReply, lastOnConnection: boolean): void {
    const res = this.#res;
    const { body, status } = reply;
    const headers: OutgoingHttpHeader[] = [];
    for (const [name, value] of reply.headers) headers.push(name, value);
    if (!isBodiless(status)) {
      headers.push('content-length', String(Buffer.byteLength(body)));
    }
    const cut = status === 413 || status === 408 || this.fault !== undefined;
    if (cut || lastOnConnection) headers.push('connection', 'close');
    res.writeHead(status, reasonOf(status), headers);
    res.end(this.head || isBodiless(status) ? undefined : body);
    if (!this.#req.complete) this.#linger(cut ? lingerMs : idleMs);
  }

  /** Reads on and throws away: a connection closed with unread bytes is reset, and the reset can overtake the answer. */
  #linger(ms: number): void {
    const { socket } = this.#req;
    const timer = setTimeout(() => socket.destroy(), ms).unref();
    // A connection that stays open serves many requests: none may leave a listener behind.
    const cancel = () => {
      clearTimeout(timer);
      socket.off('close', cancel);
    };
    this.#req.once('end', cancel);
    socket.once('close', cancel);
    this.#req.resume();
  }

  protected stream(source: SseSource, history: readonly Uint8Array[], headers: readonly Header[]): void {
    const res = this.#res;
    res.writeHead(200, headers.flat());
    if (this.head) {
      res.end();
      return;
    }
    const reader = new NodeReader(res);
    res.on('drain', () => reader.flush());
    res.once('close', () => reader.gone());
    this.core.channels.join(source, history, reader);
  }

  protected openStream({ status, headers, open }: StreamReply): void {
    const res = this.#res;
    const closing = this.core.draining ? ['connection', 'close'] : [];
    res.writeHead(status, reasonOf(status), [...headers.flat(), ...closing]);
    if (this.head) {
      res.end();
      return;
    }
    const writer = new NodeWriter(this.core.streamHost, res);
    res.on('drain', () => writer.writable());
    res.once('close', () => {
      writer.gone();
      if (!res.writableFinished) this.leave();
    });
    open(writer);
    writer.begin();
  }

  protected openPipe({ status, headers, body }: PipeReply): void {
    const res = this.#res;
    const closing = this.core.draining ? ['connection', 'close'] : [];
    res.writeHead(status, reasonOf(status), [...headers.flat(), ...closing]);
    const writer = new NodePipe(this.core.streamHost, body, res);
    res.on('drain', () => writer.writable());
    res.once('close', () => {
      writer.gone();
      if (!res.writableFinished) this.leave();
    });
    writer.begin();
  }
}

class NodePipe extends PipeWriter {
  readonly #res: ServerResponse;

  constructor(host: Pick<StreamHost, 'onOver'>, body: PipeReply['body'], res: ServerResponse) {
    super(host, body);
    this.#res = res;
  }

  protected send(chunk: Uint8Array): boolean {
    return this.#res.destroyed || this.#res.write(chunk);
  }

  protected finish(): void {
    this.#res.end();
  }

  protected disconnect(): void {
    this.#res.destroy();
  }
}

const reasonOf = (status: number) => statusLine(status).slice(4);

class NodeReader extends SseReader {
  readonly #res: ServerResponse;

  constructor(res: ServerResponse) {
    super();
    this.#res = res;
  }

  protected write(piece: Uint8Array): boolean {
    return this.#res.destroyed || this.#res.write(piece);
  }

  protected finish(): void {
    this.#res.end();
  }

  protected cut(): void {
    this.#res.destroy();
  }
}

class NodeWriter extends StreamWriter {
  readonly #res: ServerResponse;

  constructor(host: StreamHost, res: ServerResponse) {
    super(host);
    this.#res = res;
  }

  protected send(text: string): boolean {
    return this.#res.destroyed || this.#res.write(text);
  }

  protected finish(text: string): void {
    this.#res.end(text);
  }

  protected disconnect(): void {
    this.#res.destroy();
  }
}
