import { Agent as HttpAgent, type IncomingMessage, type RequestOptions, request as requestHttp } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import type { LookupFunction } from 'node:net';
import type { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { constants, createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { proxyFor, throughProxy } from '../../../http/index.ts';
import { version } from '../../../protocol/index.ts';
import type { ResolvedAddress } from './destination.ts';
import { WebError } from './errors.ts';

/** One request, to be sent on a connection of its own. */
export interface WebRequest {
  readonly url: URL;
  /** Addresses to connect to; absent: any address of the name. */
  readonly addresses?: readonly ResolvedAddress[];
  readonly method?: 'GET' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Encodings that `readBody` undoes. */
const acceptedEncodings = 'gzip, br';

/**
 * Sends a request and waits for the head of the answer. No cookies, no kept connection, no redirect followed.
 * A request to checked addresses is direct; any other one uses the proxy of the environment.
 * When `signal` aborts, the connection ends, also while the body is being read.
 * @throws WebError when there is no answer
 */
export function send(
  { url, addresses, method = 'GET', headers = {}, body }: WebRequest,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const options: RequestOptions = {
    method,
    signal,
    agent: addresses ? false : proxiedAgent(url),
    headers: { 'user-agent': `oratorio/${version}`, 'accept-encoding': acceptedEncodings, ...headers },
    ...(addresses && { lookup: pinned(addresses) }),
  };
  return new Promise((resolve, reject) => {
    const request = url.protocol === 'https:' ? requestHttps(url, options) : requestHttp(url, options);
    request.once('response', resolve);
    request.on('error', (error) => reject(signal.aborted ? signal.reason : explain(error, url)));
    request.once('close', () => reject(new WebError(`${url.host} closed the connection without an answer`)));
    request.end(body);
  });
}

/** Agent of one request through the proxy of the environment; false: a direct connection. */
function proxiedAgent(url: URL): HttpAgent | false {
  const proxy = proxyFor(url);
  if (!proxy) return false;
  return new (url.protocol === 'https:' ? HttpsAgent : HttpAgent)(throughProxy(proxy));
}

/** Answers with the checked addresses, even if the name leads elsewhere by now. */
function pinned(addresses: readonly ResolvedAddress[]): LookupFunction {
  return (hostname, options, callback) => {
    const wanted = addresses.filter(({ family }) => !options.family || options.family === family);
    const [first] = wanted;
    if (!first) callback(new Error(`no address of ${hostname} is of family ${options.family}`), '');
    else if (options.all) callback(null, [...wanted]);
    else callback(null, first.address, first.family);
  };
}

/** Describes an error by the system's code: a message of TLS or of the parser may repeat untrusted bytes. */
function explain(error: NodeJS.ErrnoException, url: URL): WebError {
  // Several addresses, each with a failure of its own: the first is as good as any.
  const first: NodeJS.ErrnoException = error instanceof AggregateError ? (error.errors[0] ?? error) : error;
  return new WebError(`${url.host} cannot be reached (${first.code ?? 'unknown reason'})`, { cause: error });
}

/** Decompressed part of a body. */
export interface WebBody {
  readonly bytes: Buffer;
  /** The body was longer than requested. */
  readonly isCut: boolean;
}

/**
 * Reads a body, at most `maxBytes` of it, counted as sent and counted decompressed; then hangs up.
 * @throws WebError when it is encoded in a way we do not know, damaged, or breaks off
 */
export async function readBody(response: IncomingMessage, maxBytes: number, signal: AbortSignal): Promise<WebBody> {
  const sent = new Cut(maxBytes);
  const plain = new Cut(maxBytes);
  const chunks: Buffer[] = [];
  const collect = async (source: AsyncIterable<Buffer>): Promise<void> => {
    for await (const chunk of plain.of(source)) chunks.push(chunk);
  };
  try {
    const decoder = decoderOf(response);
    const source = sent.of(response);
    if (decoder) await pipeline(source, decoder, collect, { signal });
    else await pipeline(source, collect, { signal });
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof WebError) throw error;
    // To the pipeline, a reader that has had enough is a stream that closed too early.
    if (!plain.isCut) throw new WebError('the answer broke off or is damaged', { cause: error });
  } finally {
    response.destroy();
  }
  return { bytes: Buffer.concat(chunks), isCut: sent.isCut || plain.isCut };
}

/** Ends a stream after so many bytes. */
class Cut {
  isCut = false;
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  async *of(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    let left = this.#max;
    for await (const chunk of source) {
      this.isCut = chunk.length > left;
      yield this.isCut ? chunk.subarray(0, left) : chunk;
      if (this.isCut) return;
      left -= chunk.length;
    }
  }
}

/** Undoes `Content-Encoding` (RFC 9110, section 8.4); undefined: nothing to undo. A body that we cut off is not an error. */
function decoderOf({ headers }: IncomingMessage): Transform | undefined {
  const encoding = (headers['content-encoding'] ?? 'identity').trim().toLowerCase();
  switch (encoding) {
    case '':
    case 'identity':
      return undefined;
    case 'gzip':
    case 'x-gzip':
      return createGunzip({ finishFlush: constants.Z_SYNC_FLUSH });
    case 'deflate':
      return createInflate({ finishFlush: constants.Z_SYNC_FLUSH });
    case 'br':
      return createBrotliDecompress({ finishFlush: constants.BROTLI_OPERATION_FLUSH });
    default:
      throw new WebError(`the answer is encoded in a way that cannot be read (${encoding.slice(0, 40)})`);
  }
}
