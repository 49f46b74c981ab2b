import { randomBytes, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

const path = '/callback';

/** Response of the authorization server, which the browser delivers. */
export interface RedirectAnswer {
  readonly params: URLSearchParams;
  /** Sends the browser the result page. */
  reply(isLoggedIn: boolean): void;
}

/** Listener on 127.0.0.1 for one redirect with the right state (RFC 8252). */
export class RedirectListener {
  readonly state = randomBytes(32).toString('base64url');
  readonly #server = createServer((request, response) => this.#handle(request, response));
  readonly #answer = Promise.withResolvers<RedirectAnswer>();
  #isAnswered = false;
  #result: ServerResponse | undefined;

  static async open(): Promise<RedirectListener> {
    const listener = new RedirectListener();
    // A log-in that ends before its redirect must not leave an unhandled rejection.
    listener.#answer.promise.catch(() => {});
    listener.#server.listen(0, '127.0.0.1');
    await once(listener.#server, 'listening');
    return listener;
  }

  get url(): string {
    return `http://${this.#host}${path}`;
  }

  /** The first redirect with the right state. @throws the reason of the signal */
  async answer(signal: AbortSignal): Promise<RedirectAnswer> {
    signal.throwIfAborted();
    const end = () => this.#answer.reject(signal.reason);
    signal.addEventListener('abort', end, { once: true });
    try {
      return await this.#answer.promise;
    } finally {
      signal.removeEventListener('abort', end);
    }
  }

  /**
   * Accepts the pasted address of a redirect that a browser on another machine could not open.
   *
   * @returns the problem of an invalid address, which changes nothing; undefined on success
   */
  paste(address: string): string | undefined {
    const parsed = URL.parse(address.trim());
    if (!parsed || parsed.origin !== new URL(this.url).origin || parsed.pathname !== path) {
      return `The address does not belong to this log-in. Paste the address that begins with ${this.url}?`;
    }
    if (this.#isAnswered) return 'The log-in has already received its answer.';
    if (!this.#isOwnState(parsed.searchParams))
      return 'The address belongs to another log-in. Open the address above, and paste the last address of that browser.';
    this.#isAnswered = true;
    this.#answer.resolve({ params: parsed.searchParams, reply: () => {} });
    return undefined;
  }

  /** Stops listening after sending the result page. Cuts all other connections: a silent one would never end. */
  async close(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    const result = this.#result;
    if (result?.writableEnded === true && !result.closed) await once(result, 'close');
    this.#server.closeAllConnections();
    await closed;
  }

  get #host(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  #handle({ method, url = '/', headers }: IncomingMessage, response: ServerResponse): void {
    response.setHeader('connection', 'close');
    // Any page and any user of this machine can send a path that is not a URL, such as `//`.
    const { pathname, searchParams: params } = URL.parse(url, 'http://127.0.0.1') ?? new URL('http://127.0.0.1');
    if (method !== 'GET' || pathname !== path || headers.host !== this.#host) send(response, 404, 'Not found.');
    else if (this.#isAnswered || !this.#isOwnState(params)) {
      send(response, 400, 'No log-in is in progress for this address. Start the log-in again.');
    } else {
      this.#isAnswered = true;
      this.#result = response;
      this.#answer.resolve({
        params,
        reply(isLoggedIn) {
          if (isLoggedIn) send(response, 200, 'Logged in. You can close this page.');
          else send(response, 400, 'The log-in failed. Oratorio shows the reason.');
        },
      });
    }
  }

  #isOwnState(params: URLSearchParams): boolean {
    const [own, given] = [this.state, params.getAll('state').join(' ')].map((text) => Buffer.from(text));
    return own !== undefined && given !== undefined && own.length === given.length && timingSafeEqual(own, given);
  }
}

/** Sends a fixed text, which never repeats the address of the request. */
function send(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, {
    'content-type': 'text/plain; charset=utf-8',
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
  });
  response.end(`${text}\n`);
}
