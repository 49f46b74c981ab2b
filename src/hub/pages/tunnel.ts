import { connect } from 'node:net';
import type { WebSocket } from 'ws';
import {
  type Authenticate,
  closeCodes,
  type Handshake,
  HttpError,
  offeredSubprotocols,
  type Socket,
  type WebSocketRoute,
} from '../../http/index.ts';
import { messageOf } from '../../lib/index.ts';
import { defaults, missingRoute, pageSubprotocol } from '../../protocol/index.ts';
import { hubError } from '../errors.ts';
import { innerPathOf, type PagePath, pagePathOf } from './inner-path.ts';
import type { Target } from './target.ts';

const { tunnelPauseBytes, tunnelResumeBytes, tunnelUpBytes, tunnelOpenMs } = defaults.hub;
const { frameBytes, bufferedBytes } = defaults.jsonRpc;

/** Code of a connection that broke without a close frame (RFC 6455, section 7.4.1). */
const brokenCode = 1006;

export interface TunnelOptions {
  readonly path: string;
  /** See `PagesOptions`. */
  readonly isToken: (token: string, host: string | null) => boolean;
  /** Calls `end` when the token expires or is revoked. Returns a function that stops watching. */
  readonly onRevoked: (token: string, end: () => void) => () => void;
  readonly targetOf: (asked: PagePath, signal: AbortSignal) => Promise<Target>;
}

/**
 * One WebSocket of a page and the one of its agent server behind it: frames of text, in order, both ways. A page that reads
 * slowly pauses the agent server. The other way nothing can be paused, so the waiting bytes are bounded and the page gets 1013.
 */
class Tunnel {
  readonly #inner: WebSocket;
  /** Frames that came before the page's socket was open. */
  #early: string[] | null = [];
  #outer: Socket<Tunnel> | undefined;
  /** Stops watching the token. */
  readonly #leave: () => void;

  constructor(inner: WebSocket, leave: () => void) {
    this.#inner = inner;
    this.#leave = leave;
    inner.on('message', (data: Buffer, isBinary) => {
      if (isBinary) this.#outer?.close(closeCodes.notText, 'Text only.');
      else this.#receive(data.toString());
    });
    inner.on('close', (code, reason) => this.#ended(code, reason.toString()));
    // 'close' follows.
    inner.on('error', () => {});
  }

  open(outer: Socket<Tunnel>): void {
    this.#outer = outer;
    for (const text of this.#early ?? []) outer.send(text);
    this.#early = null;
    if (this.#inner.readyState > this.#inner.OPEN) this.#ended(brokenCode, '');
    else this.#inner.resume();
  }

  /** A frame of the page. */
  message(text: string): void {
    this.#inner.send(text);
    if (this.#inner.bufferedAmount > tunnelUpBytes)
      this.#outer?.close(closeCodes.tryAgainLater, 'The agent server is too slow.');
  }

  drain(): void {
    if (this.#inner.isPaused && (this.#outer?.bufferedBytes ?? 0) < tunnelResumeBytes) this.#inner.resume();
  }

  close(): void {
    this.#leave();
    this.#inner.terminate();
  }

  /** The token of the page has expired or was revoked. */
  revoke(): void {
    this.#outer?.close(closeCodes.policy, 'The token has expired or was revoked.');
    this.#inner.terminate();
  }

  #receive(text: string): void {
    if (!this.#outer) {
      // Frames that arrived are queued; no more is read until the page is there.
      this.#early?.push(text);
      this.#inner.pause();
      return;
    }
    this.#outer.send(text);
    if (this.#outer.bufferedBytes > tunnelPauseBytes) this.#inner.pause();
  }

  #ended(code: number, reason: string): void {
    const isBroken = code === brokenCode;
    const isSendable = (code >= 1000 && code < 1004) || (code >= 1007 && code < 1015) || (code >= 3000 && code < 5000);
    if (isBroken) this.#outer?.close(closeCodes.restart, 'The agent server has gone.');
    else this.#outer?.close(isSendable ? code : 1000, reason);
  }
}

/** The WebSockets of the pages of all workspaces. */
export function tunnelRoute({ path, isToken, onRevoked, targetOf }: TunnelOptions): WebSocketRoute<Tunnel> {
  async function prepare(request: Handshake, token: string): Promise<{ principal: Tunnel; close(): void }> {
    const asked = pagePathOf(request.path);
    const inner = asked && innerPathOf(asked.rest);
    if (asked === undefined || inner === undefined) throw hubError('notFound', missingRoute);
    let tunnel: Tunnel | undefined;
    const leave = onRevoked(token, () => tunnel?.revoke());
    try {
      const target = await targetOf(asked, request.signal);
      tunnel = await dial(target, `${target.prefix ?? ''}${inner}`, { signal: request.signal, leave });
      // The token may have been revoked since the handshake began.
      if (!isToken(token, asked.host)) throw refusedToken();
    } catch (error) {
      leave();
      tunnel?.close();
      throw error;
    }
    const opened = tunnel;
    return { principal: opened, close: () => opened.close() };
  }
  return {
    path,
    auth: bySubprotocol(isToken) as Authenticate<never>,
    subprotocol: pageSubprotocol,
    prepare: (request, token) => prepare(request, String(token)),
    maxPayloadBytes: frameBytes,
    maxBufferedBytes: bufferedBytes,
    open: (socket) => socket.principal.open(socket),
    message: (socket, text) => socket.principal.message(text),
    drain: (socket) => socket.principal.drain(),
    close: (socket) => socket.principal.close(),
  };
}

/** A browser sends no headers with a WebSocket: the token is the second of two subprotocols. Not in the address, which is logged. */
function bySubprotocol(isToken: TunnelOptions['isToken']): Authenticate<string> {
  return (request) => {
    const [name, token, ...more] = offeredSubprotocols(request.header('sec-websocket-protocol'));
    if (name === pageSubprotocol && token !== undefined && more.length === 0 && isToken(token, hostOf(request.path)))
      return token;
    throw refusedToken();
  };
}

const hostOf = (path: string): string | null => pagePathOf(path)?.host ?? null;

const refusedToken = () => new HttpError(401, 'unauthorized', 'The page token is missing or wrong.');

interface DialOptions {
  readonly signal: AbortSignal;
  readonly leave: () => void;
}

/** Opens the inner connection first: no frame of a page comes before there is somewhere to send it. */
async function dial(target: Target, path: string, { signal, leave }: DialOptions): Promise<Tunnel> {
  const { WebSocket } = await import('ws');
  target.confirm();
  const { socketPath } = target;
  const url = new URL(path, target.origin.replace(/^http/, 'ws'));
  const inner = new WebSocket(url, [pageSubprotocol, target.token], {
    handshakeTimeout: tunnelOpenMs,
    maxPayload: bufferedBytes,
    perMessageDeflate: false,
    followRedirects: false,
    ...(socketPath !== undefined && { createConnection: () => connect(socketPath) }),
    headers: { authorization: `Bearer ${target.token}` },
  });
  const tunnel = new Tunnel(inner, leave);
  return new Promise((resolve, reject) => {
    const abort = () => inner.terminate();
    signal.addEventListener('abort', abort, { once: true });
    const settle = (outcome: () => void) => {
      signal.removeEventListener('abort', abort);
      outcome();
    };
    inner.once('open', () => settle(() => resolve(tunnel)));
    inner.once('unexpected-response', (_request, answer) => {
      answer.resume();
      inner.terminate();
      settle(() => reject(refusal(answer.statusCode ?? 0)));
    });
    inner.on('error', (error) => {
      target.doubt();
      settle(() => reject(hubError('badGateway', `The agent server did not answer: ${messageOf(error)}`)));
    });
  });
}

function refusal(status: number): HttpError {
  if (status === 404 || status === 405 || status === 426) return hubError('notFound', missingRoute);
  return hubError('badGateway', `The agent server refused the WebSocket (${status}).`);
}
