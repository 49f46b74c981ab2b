import { randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import {
  bytes,
  createServer,
  HttpError,
  type HttpServer,
  isForeign,
  json,
  loopbackHosts,
  secretTest,
} from '../../http/index.ts';
import { httpBase, messageOf } from '../../lib/index.ts';
import type { Logger } from '../../log/index.ts';
import { defaults } from '../../protocol/index.ts';
import { type ExportedRecord, recordsOf, type Signal, signals } from './otlp.ts';
import { decodeRequest } from './protobuf.ts';

const unzip = promisify(gunzip);

export interface ReceiverOptions {
  readonly take: (signal: Signal, records: readonly ExportedRecord[]) => void;
  readonly logger: Logger;
  /** Milliseconds of a clock that never goes back. Default: that of the process. */
  readonly now?: () => number;
  /** Called with the receiver's key. */
  readonly protect: (secret: string) => void;
}

interface Context {
  readonly params: Readonly<Record<string, string>>;
  header(name: string): string | undefined;
  bytes(): Promise<Uint8Array>;
}

/**
 * Receives the telemetry of one life of an agent's process by OTLP over HTTP, on a port of the loopback interface and below a path
 * that only this process is given. Ends with the process.
 */
export class TelemetryReceiver {
  readonly #options: ReceiverOptions;
  readonly #key = randomBytes(24).toString('base64url');
  #server: HttpServer | undefined;
  #address = '';
  #running = 0;
  #window = { since: Number.NEGATIVE_INFINITY, requests: 0 };

  private constructor(options: ReceiverOptions) {
    this.#options = options;
  }

  /** @throws Error when no port can be had */
  static async listen(options: ReceiverOptions): Promise<TelemetryReceiver> {
    const receiver = new TelemetryReceiver(options);
    await receiver.#listen();
    return receiver;
  }

  /** Address with the key: for the environment of the process only. */
  get address(): string {
    return this.#address;
  }

  async close(): Promise<void> {
    await this.#server?.close(defaults.externalAgent.telemetry.closeGraceMs);
  }

  async #listen(): Promise<void> {
    const { logger, protect } = this.#options;
    const { bodyBytes } = defaults.externalAgent.telemetry;
    const isKey = secretTest(this.#key);
    protect(this.#key);
    this.#server = await createServer({
      routes: [
        {
          method: 'POST',
          path: '/:key/v1/:signal',
          auth: ({ path }) => {
            if (!isKey(path.split('/')[1] ?? '')) throw new HttpError(404, 'notFound', 'There is nothing here.');
          },
          bodyLimit: bodyBytes,
          handler: (context) => this.#take(context),
        },
      ],
      hostAllowed: loopbackHosts(),
      guard: (request) => {
        const [host = '', site, origin] = ['host', 'sec-fetch-site', 'origin'].map((name) => request.header(name));
        if (!isForeign(host, site, origin)) return;
        throw new HttpError(403, 'foreignOrigin', 'Pages are not served.');
      },
      errorBody: ({ code, message }) => ({ code, message }),
      onBug: (error, errorId) =>
        logger.error('an export of an agent was not taken because of a bug', { errorId, error }),
      limits: {
        bodyBytes,
        deadlineMs: defaults.http.requestDeadlineMs,
        sseBufferBytes: defaults.sse.bufferBytes,
        sseHeartbeatMs: defaults.sse.heartbeatMs,
        sseRetryMs: defaults.sse.retryMs,
      },
    });
    this.#address = `${httpBase(await this.#server.listen({ host: '127.0.0.1', port: 0 }))}/${this.#key}`;
  }

  async #take(context: Context) {
    const signal = signals.find((each) => each === context.params['signal']);
    if (!signal) throw new HttpError(404, 'notFound', `There are only ${signals.join(', ')} here.`);
    const type = context.header('content-type')?.split(';', 1)[0]?.trim().toLowerCase();
    if (type !== 'application/json' && type !== 'application/x-protobuf') {
      throw new HttpError(415, 'unsupportedMediaType', 'Send application/json or application/x-protobuf.');
    }
    this.#admit();
    this.#running += 1;
    try {
      const body = await this.#body(context);
      const request = type === 'application/json' ? parseText(body) : parseBytes(signal, body);
      this.#options.take(signal, recordsOf(signal, request, defaults.externalAgent.telemetry.records));
    } finally {
      this.#running -= 1;
    }
    return type === 'application/json' ? json(200, {}) : bytes(200, type, '');
  }

  /** @throws HttpError 429 for too many at once, or in this second */
  #admit(): void {
    const { concurrentRequests, requestsPerSecond } = defaults.externalAgent.telemetry;
    const now = (this.#options.now ?? (() => performance.now()))();
    if (now - this.#window.since > 1_000) this.#window = { since: now, requests: 0 };
    this.#window.requests += 1;
    if (this.#running < concurrentRequests && this.#window.requests <= requestsPerSecond) return;
    throw new HttpError(429, 'tooManyRequests', 'Too many requests: wait a second.', {}, [['retry-after', '1']]);
  }

  async #body(context: Context): Promise<Uint8Array> {
    const body = await context.bytes();
    const encoding = context.header('content-encoding')?.trim().toLowerCase() ?? 'identity';
    if (encoding === 'identity') return body;
    if (encoding !== 'gzip') throw new HttpError(415, 'unsupportedEncoding', 'Send it plain, or with gzip.');
    const { inflatedBytes } = defaults.externalAgent.telemetry;
    try {
      return await unzip(body, { maxOutputLength: inflatedBytes });
    } catch (error) {
      if (error instanceof RangeError) {
        throw new HttpError(413, 'payloadTooLarge', `The body may have ${inflatedBytes} bytes once it is unpacked.`);
      }
      throw new HttpError(400, 'invalidRequest', `The body is not gzip: ${messageOf(error)}`);
    }
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

function parseText(body: Uint8Array): unknown {
  try {
    return JSON.parse(utf8.decode(body));
  } catch {
    throw new HttpError(400, 'invalidRequest', 'The body is not JSON.');
  }
}

function parseBytes(signal: Signal, body: Uint8Array): unknown {
  try {
    return decodeRequest(signal, body);
  } catch (error) {
    throw new HttpError(400, 'invalidRequest', `The body is not an export request: ${messageOf(error)}.`);
  }
}
