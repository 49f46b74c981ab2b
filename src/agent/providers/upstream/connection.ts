import type { Agent, ClientRequest, IncomingHttpHeaders, IncomingMessage, RequestOptions } from 'node:http';
import type { Readable } from 'node:stream';
import { urlToHttpOptions } from 'node:url';
import { type HttpProxy, ProxyError, proxyFor, throughProxy } from '../../../http/index.ts';
import { isHttpUrl, PacedReading, passwordIn, redacted } from '../../../lib/index.ts';
import { defaults } from '../../../protocol/index.ts';
import { ModelError } from '../../model.ts';
import type { KeySource } from '../settings.ts';
import { decoded } from './decoded.ts';
import {
  brokenFault,
  cutFault,
  interimFault,
  type Peer,
  proxyRefusedFault,
  silentFault,
  switchedFault,
} from './errors.ts';

/** `import … from 'node:http'` would evaluate its `WebSocket` getter, and with it load 10 MiB of an unused client. */
const http = process.getBuiltinModule('node:http');

export interface UpstreamOptions {
  /** Base URL; its query is sent, too. */
  readonly endPoint: string;
  /** Empty: the upstream needs none. */
  readonly apiKey: string;
  /** Headers that carry the key. Default: `Authorization: Bearer`. */
  readonly keyHeaders?: Readonly<Record<string, string>> | undefined;
  /** Further headers of every request. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Silence after which an exchange has failed, in milliseconds. Every byte counts as life. */
  readonly idleMs: number;
  /** Address of a proxy, or `none`; empty: the environment decides. */
  readonly proxy?: string | undefined;
  /** Place of the key, for messages. */
  readonly keySource?: KeySource | undefined;
}

/** One request and how its answer is taken in, as its bytes arrive. */
export interface Exchange {
  readonly method: 'GET' | 'POST';
  /** Begins with `/`; comes after the path of the end point. */
  readonly path: string;
  /** JSON. */
  readonly payload?: string;
  readonly accept: string;
  /** Further headers, e.g. the key in the form of this upstream. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly signal: AbortSignal;
  /** Must not throw. */
  readonly onHead: (status: number, headers: IncomingHttpHeaders) => void;
  /** Returns true once the answer is complete, even if the connection carries more. An error that it throws ends the exchange. */
  readonly onBytes: (chunk: Buffer) => boolean;
}

/**
 * The connections to one upstream, kept open and used again. Redirects are not followed: the key would travel with them.
 */
export class Upstream {
  /** Host, proxy and file of the key, for messages; never credentials. */
  readonly place: Peer;
  /** Removes the key and the password of the end point from a text: upstreams quote credentials that they refuse. */
  readonly clean: (text: string) => string;
  readonly #options: UpstreamOptions;
  readonly #url: URL;
  /** Prefix of every path. */
  readonly #prefix: string;
  readonly #module: Pick<typeof http, 'request' | 'Agent'>;
  readonly #agent: Agent;
  readonly #proxy: HttpProxy | undefined;
  /** Options of every request. */
  readonly #base: RequestOptions;
  readonly #headers: Readonly<Record<string, string>>;
  #isClosed = false;

  /** @throws ModelError when the end point is not an http or https URL */
  constructor(options: UpstreamOptions) {
    this.#options = options;
    this.#url = baseUrl(options.endPoint);
    this.#prefix = this.#url.pathname.replace(/(?<!\/)\/+$/, '').replace(/\/chat\/completions$/, '');
    this.#proxy = usableProxy(this.#url, options.proxy);
    this.place = {
      address: this.#url.port ? this.#url.host : `${this.#url.hostname}:${isTls(this.#url) ? 443 : 80}`,
      ...(this.#proxy && { proxy: this.#proxy.shown }),
      ...(options.keySource !== undefined && { keySource: options.keySource }),
    };
    this.#module = isTls(this.#url) ? process.getBuiltinModule('node:https') : http;
    this.#agent = new this.#module.Agent({
      ...{ keepAlive: true, timeout: defaults.upstream.keptConnectionMs },
      ...throughProxy(this.#proxy),
    });
    this.#base = { ...urlToHttpOptions(this.#url), timeout: options.idleMs };
    const basic = Buffer.from(this.#base.auth ?? '').toString('base64');
    const secrets = [options.apiKey, basic, passwordIn(options.endPoint)].filter((secret) => secret !== '');
    this.clean = (text) => secrets.reduce((cleaned, secret) => cleaned.replaceAll(secret, redacted), text);
    this.#headers = {
      // Some gateways reject a client without a `user-agent`.
      'user-agent': 'oratorio',
      'accept-encoding': 'identity',
      ...options.headers,
      ...(options.apiKey !== '' && (options.keyHeaders ?? { authorization: `Bearer ${options.apiKey}` })),
    };
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Ends every connection. */
  close(): void {
    this.#isClosed = true;
    this.#agent.destroy();
  }

  /**
   * Sends one request and takes in its answer; resolves when the answer has ended or `onBytes` returned true.
   * @returns whether the upstream marked the end of its answer; false: it just closed the connection
   * @throws ModelError, the reason of `signal`, or the error of `onBytes`
   */
  async run(exchange: Exchange): Promise<boolean> {
    const first = new Attempt(this.#send(exchange, this.#agent), exchange, this);
    try {
      return await first.ended;
    } catch (error) {
      // The upstream closed the idle connection just as we used it: a new one decides.
      if (!first.metStaleConnection || this.#isClosed || exchange.signal.aborted) throw error;
      return new Attempt(this.#send(exchange, new this.#module.Agent(throughProxy(this.#proxy))), exchange, this).ended;
    }
  }

  get idleMs(): number {
    return this.#options.idleMs;
  }

  #send({ method, path, payload, accept, headers }: Exchange, agent: Agent): ClientRequest {
    const options: RequestOptions = {
      ...this.#base,
      path: `${this.#prefix}${path}${this.#url.search}`,
      method,
      agent,
      headers: {
        ...this.#headers,
        ...headers,
        accept,
        ...(payload !== undefined && {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(payload),
        }),
      },
    };
    try {
      // A text is written together with the head.
      return this.#module.request(options).end(payload);
    } catch {
      // Node refuses characters that no header can carry; its error would quote the header.
      throw new ModelError(
        'upstreamRejected',
        'The request cannot be sent: ApiKey holds characters that no header can.',
      );
    }
  }
}

/** @throws ModelError when the proxy cannot be used */
function usableProxy(url: URL, setting: string | undefined): HttpProxy | undefined {
  try {
    return proxyFor(url, { setting });
  } catch (error) {
    if (!(error instanceof ProxyError)) throw error;
    throw new ModelError('upstreamUnreachable', error.message, { isRetryable: false, cause: error });
  }
}

const isTls = (url: URL): boolean => url.protocol === 'https:';

function baseUrl(endPoint: string): URL {
  if (isHttpUrl(endPoint)) return new URL(endPoint);
  throw new ModelError('upstreamUnreachable', 'EndPoint is not an http or https URL. Correct the setting.', {
    isRetryable: false,
  });
}

/** One request on one connection. `ended` settles once, and from then on no handler is called. */
class Attempt {
  readonly ended: Promise<boolean>;
  readonly #request: ClientRequest;
  readonly #exchange: Exchange;
  readonly #upstream: Upstream;
  #settle: { resolve(isMarked: boolean): void; reject(error: unknown): void } | undefined;
  #hasAnswer = false;
  #interimAnswers = 0;
  #metStaleConnection = false;
  #drained = 0;

  constructor(request: ClientRequest, exchange: Exchange, upstream: Upstream) {
    this.#request = request;
    this.#exchange = exchange;
    this.#upstream = upstream;
    this.ended = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    request.on('response', (response) => this.#receive(response));
    request.on('information', () => this.#countInterim());
    request.on('upgrade', (_, socket) => {
      socket.destroy();
      this.#fail(switchedFault(upstream.place));
    });
    request.on('timeout', () => this.#silent());
    request.on('error', (error) => this.#broken(error));
    if (exchange.signal.aborted) this.#abort();
    else exchange.signal.addEventListener('abort', this.#abort, { once: true });
  }

  get metStaleConnection(): boolean {
    return this.#metStaleConnection;
  }

  readonly #abort = () => this.#fail(this.#exchange.signal.reason);

  /** Each interim answer resets the time limit for silence, so only this count ends an upstream that sends nothing else. */
  #countInterim(): void {
    this.#interimAnswers += 1;
    if (this.#interimAnswers > defaults.upstream.interimAnswers) this.#fail(interimFault(this.#upstream.place));
  }

  #receive(response: IncomingMessage): void {
    this.#hasAnswer = true;
    const upstream = this.#upstream;
    const body = this.#bodyOf(response);
    if (!body) return;
    body.on('error', (error) => this.#broken(error));
    body.on('end', () => this.#succeed(isMarked(response)));
    body.on('close', () => {
      // After every answer, and to make an error costs more than to read one.
      if (this.#settle) this.#fail(upstream.isClosed ? closedFault() : cutFault());
    });
    if (response.statusCode === 407 && upstream.place.proxy !== undefined) {
      this.#fail(proxyRefusedFault(upstream.place, 407));
      return;
    }
    const { onHead, onBytes } = this.#exchange;
    onHead(response.statusCode ?? 0, response.headers);
    const reading = new PacedReading(defaults.reading.busyMs);
    const take = (chunk: Buffer) => {
      try {
        if (onBytes(chunk)) this.#finishEarly();
      } catch (error) {
        // Thrown into an event of a socket it would end the process.
        this.#fail(error);
      }
    };
    body.on('data', (chunk: Buffer) => {
      if (this.#settle) reading.run(body, () => take(chunk));
      else this.#drain(chunk);
    });
  }

  #bodyOf(response: IncomingMessage): Readable | undefined {
    try {
      return decoded(response);
    } catch (error) {
      this.#fail(error);
      return undefined;
    }
  }

  /** An upstream that talks on and on is cut short. */
  #drain(chunk: Buffer): void {
    this.#drained += chunk.length;
    if (this.#drained > defaults.upstream.errorBytes) this.#request.destroy();
  }

  /** Reads the bytes that have arrived already: some upstreams count tokens after their last word. */
  #finishEarly(): void {
    this.#request.setTimeout(defaults.upstream.drainMs);
    setImmediate(() => this.#succeed(true));
  }

  #succeed(isMarked: boolean): void {
    this.#leave()?.resolve(isMarked);
  }

  #fail(error: unknown): void {
    const settle = this.#leave();
    if (!settle) return;
    settle.reject(error);
    this.#request.destroy();
  }

  #silent(): void {
    const { place, idleMs } = this.#upstream;
    this.#fail(silentFault(place, idleMs, this.#hasAnswer));
    // Also after a complete answer, when the upstream only keeps the connection open.
    this.#request.destroy();
  }

  #broken(error: NodeJS.ErrnoException): void {
    this.#metStaleConnection ||= this.#request.reusedSocket && !this.#hasAnswer && isReset(error);
    const { place, isClosed } = this.#upstream;
    this.#fail(isClosed ? closedFault() : brokenFault(error, place, this.#hasAnswer));
  }

  #leave() {
    const settle = this.#settle;
    this.#settle = undefined;
    this.#exchange.signal.removeEventListener('abort', this.#abort);
    return settle;
  }
}

const isReset = ({ code }: NodeJS.ErrnoException): boolean => code === 'ECONNRESET' || code === 'EPIPE';

/** Whether an end is distinguishable from a broken connection (RFC 9112, section 6.3). */
const isMarked = ({ headers }: IncomingMessage): boolean =>
  /chunked/i.test(headers['transfer-encoding'] ?? '') || headers['content-length'] !== undefined;

function closedFault(): ModelError {
  return new ModelError('upstreamUnreachable', 'The provider was closed.', { isRetryable: false });
}
