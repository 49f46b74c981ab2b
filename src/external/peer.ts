import { wellFormedJson } from '../lib/index.ts';
import { PeerClosedError, PeerError } from './failure.ts';

export interface PeerOptions {
  /** Sends one line. */
  readonly write: (line: string) => void;
  /** Answers a request of the agent, until the agent withdraws it (`signal`). A `PeerError` becomes its error response. */
  readonly onRequest: (method: string, params: unknown, signal: AbortSignal) => Promise<unknown>;
  /** @param bytes length of the notification's line */
  readonly onNotification: (method: string, params: unknown, bytes: number) => void;
  readonly onBug: (error: unknown) => void;
}

interface Waiting {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
}

const internalError = -32_603;
const requestCancelled = -32_800;
/** Notification by which either side withdraws a request of its own. */
const cancelMethod = '$/cancel_request';

/**
 * One JSON-RPC conversation over lines. Lines without a message and answers to unknown requests are ignored, and every request of
 * the other side is answered.
 */
export class Peer {
  readonly #options: PeerOptions;
  readonly #waiting = new Map<number, Waiting>();
  /** Requests of the agent without an answer, by their ids. */
  readonly #answering = new Map<string | number, AbortController>();
  #lastId = 0;
  #isClosed = false;
  /** Lines that held no message. */
  noise = 0;

  constructor(options: PeerOptions) {
    this.#options = options;
  }

  /**
   * @param signal withdraws the request; a later answer of the agent is ignored
   * @throws PeerError the agent's answer; PeerClosedError when none will come; the reason of `signal`
   */
  request(method: string, params: unknown, signal?: AbortSignal): Promise<unknown> {
    if (this.#isClosed) return Promise.reject(new PeerClosedError());
    if (signal?.aborted) return Promise.reject(signal.reason);
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve, reject) => {
      const withdraw = () => {
        this.#waiting.delete(id);
        this.notify(cancelMethod, { requestId: id });
        reject(signal?.reason);
      };
      const settled = () => signal?.removeEventListener('abort', withdraw);
      signal?.addEventListener('abort', withdraw, { once: true });
      this.#waiting.set(id, {
        resolve: (result) => {
          settled();
          resolve(result);
        },
        reject: (error) => {
          settled();
          reject(error);
        },
      });
      this.#send({ id, method, params });
    });
  }

  notify(method: string, params: unknown): void {
    if (!this.#isClosed) this.#send({ method, params });
  }

  /** Takes one line that the agent has written. */
  take(line: Buffer): void {
    const message = this.#isClosed ? undefined : parse(line);
    if (!message) {
      this.noise += 1;
      return;
    }
    const { id, method, params } = message;
    if (typeof method !== 'string') this.#settle(message);
    else if (id === undefined || id === null) this.#notice(method, params, line.length);
    else if (typeof id === 'string' || typeof id === 'number') void this.#answer(id, method, params);
  }

  /** Rejects every request without an answer; sends and takes nothing more. */
  close(): void {
    this.#isClosed = true;
    for (const answering of this.#answering.values()) answering.abort(new PeerClosedError());
    this.#answering.clear();
    for (const { reject } of this.#waiting.values()) reject(new PeerClosedError());
    this.#waiting.clear();
  }

  #notice(method: string, params: unknown, bytes: number): void {
    if (method !== cancelMethod) {
      this.#options.onNotification(method, params, bytes);
      return;
    }
    const { requestId } = (typeof params === 'object' && params !== null ? params : {}) as { requestId?: unknown };
    if (typeof requestId !== 'string' && typeof requestId !== 'number') return;
    this.#answering.get(requestId)?.abort(new PeerError(requestCancelled, 'Request cancelled'));
  }

  #settle({ id, error, result }: Message): void {
    if (typeof id !== 'number') return;
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error === undefined || error === null) waiting?.resolve(result);
    else waiting?.reject(peerErrorOf(error));
  }

  async #answer(id: string | number, method: string, params: unknown): Promise<void> {
    // When two requests share an id, only the later one can be withdrawn.
    const answering = new AbortController();
    this.#answering.set(id, answering);
    try {
      const result = (await this.#options.onRequest(method, params, answering.signal)) ?? null;
      answering.signal.throwIfAborted();
      if (!this.#isClosed) this.#send({ id, result });
    } catch (thrown) {
      const error: unknown = answering.signal.aborted ? answering.signal.reason : thrown;
      const { code, message } = error instanceof PeerError ? error : new PeerError(internalError, 'Internal error');
      if (!this.#isClosed) this.#send({ id, error: { code, message } });
      if (!(error instanceof PeerError || error instanceof PeerClosedError)) this.#options.onBug(error);
    } finally {
      if (this.#answering.get(id) === answering) this.#answering.delete(id);
    }
  }

  #send(message: object): void {
    this.#options.write(`${wellFormedJson(JSON.stringify({ jsonrpc: '2.0', ...message }))}\n`);
  }
}

type Message = Readonly<Partial<Record<'id' | 'method' | 'params' | 'error' | 'result', unknown>>>;

function parse(line: Buffer): Message | undefined {
  try {
    const value: unknown = JSON.parse(wellFormedJson(line.toString('utf8')));
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function peerErrorOf(error: unknown): PeerError {
  const { code, message, data } = (typeof error === 'object' ? error : {}) as Readonly<Record<string, unknown>>;
  const detail = detailOf(data);
  const words = typeof message === 'string' ? message : 'The agent reports an error without words.';
  return new PeerError(typeof code === 'number' ? code : internalError, detail ? `${words}: ${detail}` : words);
}

/** Returns the details of an error: agents put them into `data`, next to "Internal error". */
function detailOf(data: unknown): string | undefined {
  if (typeof data === 'string') return data;
  const { details, message, error } = (typeof data === 'object' && data !== null ? data : {}) as Readonly<
    Record<string, unknown>
  >;
  return [details, message, error].find((each): each is string => typeof each === 'string');
}
