import { connect, type Socket } from 'node:net';
import { plainHost } from '../lib/index.ts';

/** The whole answer of a healthy server: a status of 2xx and a body of known length. */
export interface PlainAnswer {
  readonly status: number;
  readonly body: string;
}

const headBytes = 4_096;
const endOfHead = '\r\n\r\n';

/**
 * One connection to a local server that is asked the same again and again. Understands the plain answer of a healthy server
 * only: `node:http` takes four times as long for it, which a Hub with a hundred servers spends twenty times a second
 * (bench `hub-lifecycle`). For anything else `ask` returns undefined, and the caller asks with `node:http`.
 */
export class KeptConnection {
  #socket: Socket | undefined;
  #url = '';
  #request = '';
  #receive: ((bytes: Buffer | undefined) => void) | undefined;

  /**
   * @param url `http:` with host and port, without credentials
   * @param bodyBytes the longest body that is understood
   * @param signal abandons the question and closes the connection
   * @returns undefined for every other answer, and for none; the connection is closed then
   */
  async ask(url: string, bodyBytes: number, signal: AbortSignal): Promise<PlainAnswer | undefined> {
    // A second question at the same time has no place here.
    if (this.#receive || signal.aborted) return undefined;
    const abandon = (): void => this.#receive?.(undefined);
    signal.addEventListener('abort', abandon, { once: true });
    let answer: PlainAnswer | undefined;
    try {
      const socket = this.#open(url);
      answer = await new Promise((resolve) => {
        let text = '';
        this.#receive = (bytes) => {
          text += bytes?.toString('latin1') ?? '';
          const read = bytes === undefined ? undefined : readAnswer(text, bodyBytes);
          if (read !== 'more') resolve(read);
        };
        socket.write(this.#request);
      });
    } catch {
      // An invalid URL: node:http names the problem.
    }
    signal.removeEventListener('abort', abandon);
    this.#receive = undefined;
    if (answer === undefined) this.destroy();
    return answer;
  }

  #open(url: string): Socket {
    if (this.#socket && url === this.#url) return this.#socket;
    this.destroy();
    const { protocol, hostname, port, host, pathname, search } = new URL(url);
    if (protocol !== 'http:') throw new TypeError('not an http: URL');
    const socket = connect({ host: plainHost(hostname), port: Number(port || 80), noDelay: true });
    const lose = (): void => {
      if (this.#socket === socket) this.#socket = undefined;
      socket.destroy();
      this.#receive?.(undefined);
    };
    // Unrequested bytes must not answer the next question.
    socket.on('data', (bytes: Buffer) => (this.#receive ? this.#receive(bytes) : lose()));
    for (const event of ['error', 'end', 'close']) socket.on(event, lose);
    this.#socket = socket;
    this.#url = url;
    this.#request = `GET ${pathname}${search} HTTP/1.1\r\nHost: ${host}\r\nConnection: keep-alive\r\n\r\n`;
    return socket;
  }

  destroy(): void {
    const socket = this.#socket;
    this.#socket = undefined;
    socket?.destroy();
  }
}

/** @param text received bytes, one character each */
function readAnswer(text: string, bodyBytes: number): PlainAnswer | 'more' | undefined {
  const end = text.indexOf(endOfHead);
  if (end < 0) return text.length < headBytes ? 'more' : undefined;
  const head = text.slice(0, end);
  const status = /^HTTP\/1\.1 (2\d\d)[ \r]/.exec(head)?.[1];
  const lengths = [...head.matchAll(/\r\ncontent-length:[ \t]*(\d{1,9})[ \t]*(?=\r|$)/gi)];
  const length = Number(lengths[0]?.[1]);
  if (status === undefined || lengths.length !== 1 || /\r\n(transfer-encoding|connection:[ \t]*close)/i.test(head))
    return undefined;
  if (length > bodyBytes) return undefined;
  const body = text.slice(end + endOfHead.length);
  if (body.length < length) return 'more';
  return body.length > length
    ? undefined
    : { status: Number(status), body: Buffer.from(body, 'latin1').toString('utf8') };
}
