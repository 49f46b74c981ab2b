import {
  type ErrorBody,
  type InvalidMessage,
  JsonRpcError,
  type Message,
  messageText,
  type RpcId,
  readMessage,
  rpcCodes,
} from './message.ts';

/** Result of a request. */
export interface Reply {
  readonly result: unknown;
  /** Delays the answer; its error becomes the answer. For a moment only: the request is not among those in `answering`. */
  readonly before?: Promise<void> | undefined;
  /** Work right after the answer was sent, or could not be. */
  readonly after?: (() => void) | undefined;
}

export interface IncomingRequest {
  readonly id: RpcId;
  readonly method: string;
  readonly params: unknown;
  /** Aborts when the other side withdraws the request, and when the peer closes. */
  readonly signal: AbortSignal;
}

export interface PeerOptions {
  /** Sends one message. */
  readonly send: (text: string) => void;
  /**
   * Answers a request; undefined: sends no answer. A `JsonRpcError` becomes the answer. A reply that is not a promise is sent at
   * once. Absent: every method is unknown.
   */
  readonly onRequest?: (request: IncomingRequest) => Reply | undefined | Promise<Reply | undefined>;
  /** @param bytes length of the message */
  readonly onNotification?: (method: string, params: unknown, bytes: number) => void;
  /** Takes a text that is not a message. Absent: it is ignored. */
  readonly onInvalid?: (message: InvalidMessage) => void;
  /** Error answer for other errors of `onRequest`. Absent: an internal error without details. */
  readonly failureOf?: (error: unknown) => ErrorBody;
  /** Error for a received error answer, which may have any shape. Absent: a `JsonRpcError`. */
  readonly errorOf?: (error: unknown) => Error;
  /**
   * Notification by which either side withdraws a request of its own; its parameter is `requestId`. Absent: neither side is
   * notified. `answer`: answers a request that the other side has withdrawn; absent: it has no answer.
   */
  readonly cancel?: { readonly method: string; readonly answer?: ErrorBody };
  /** Id of the request with this number; the first is 0. Absent: the number. */
  readonly idOf?: (number: number) => RpcId;
  /** Requires the letter of JSON-RPC 2.0 of the other side. Default: false. */
  readonly isStrict?: boolean;
}

export interface CallOptions {
  /** Withdraws the request; a later answer is ignored. */
  readonly signal?: AbortSignal | undefined;
  /** Withdraws the request after `ms` milliseconds, with this error. */
  readonly deadline?: { readonly ms: number; readonly error: () => Error } | undefined;
}

export type Answer = { readonly result: unknown } | { readonly error: Error };

interface Answering {
  readonly id: RpcId;
  readonly stop: AbortController;
}

/**
 * One side of a JSON-RPC 2.0 conversation: ids, pending requests, cancellation, errors. The caller brings the transport and the
 * limits. Answers to unknown requests are ignored, and nothing that the other side sends throws.
 */
export class Peer {
  readonly #options: PeerOptions;
  readonly #pending = new Map<RpcId, (answer: Answer) => void>();
  readonly #answering = new Set<Answering>();
  #count = 0;
  #end: Error | undefined;

  constructor(options: PeerOptions) {
    this.#options = options;
  }

  /** Number of our requests without an answer. */
  get pending(): number {
    return this.#pending.size;
  }

  /** Number of requests of the other side whose handler has returned a promise that is not settled. */
  get answering(): number {
    return this.#answering.size;
  }

  isAnswering(id: RpcId): boolean {
    return this.#answeringOf(id) !== undefined;
  }

  /**
   * Sends a request and resolves with its result.
   *
   * @throws the error answer; the reason of `signal`; the error of `deadline`; the error of `close`
   */
  request(method: string, params: unknown, { signal, deadline }: CallOptions = {}): Promise<unknown> {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const withdraw = (reason: unknown) => {
        this.forget(id);
        settle();
        reject(reason);
        const { cancel } = this.#options;
        if (cancel) this.notify(cancel.method, { requestId: id });
      };
      const onAbort = () => withdraw(signal?.reason);
      const timer = deadline && setTimeout(() => withdraw(deadline.error()), deadline.ms);
      const settle = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', onAbort);
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      const id = this.ask(method, params, (answer) => {
        settle();
        if ('error' in answer) reject(answer.error);
        else resolve(answer.result);
      });
    });
  }

  /** Sends a request and calls `settle` with its answer when that is read, or with the error of `close`. */
  ask(method: string, params: unknown, settle: (answer: Answer) => void): RpcId {
    const id = this.#options.idOf?.(this.#count) ?? this.#count;
    this.#count += 1;
    if (this.#end) settle({ error: this.#end });
    else {
      this.#pending.set(id, settle);
      this.#send({ id, method, params });
    }
    return id;
  }

  /** Ignores the answer to a request of `ask`. */
  forget(id: RpcId): void {
    this.#pending.delete(id);
  }

  notify(method: string, params: unknown): void {
    this.#send({ method, params });
  }

  /** Sends an error answer. `id` is null if the message has none. */
  refuse(id: RpcId | null, { code, message, data }: ErrorBody): void {
    this.#send({ id, error: { code, message, data } });
  }

  /** Takes one received text. @param bytes its length, for `onNotification` */
  receive(text: string, bytes = text.length): void {
    if (this.#end) return;
    const message = readMessage(text, this.#options.isStrict ?? false);
    if (message.kind === 'request') this.#answer(message);
    else if (message.kind === 'notification') this.#notice(message.method, message.params, bytes);
    else if (message.kind === 'response') this.#settle(message);
    else this.#options.onInvalid?.(message);
  }

  /** Ends every request with `error`; sends and takes nothing more. Handlers that run are aborted. */
  close(error: Error): void {
    if (this.#end) return;
    this.#end = error;
    for (const { stop } of this.#answering) stop.abort(error);
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    for (const settle of pending) settle({ error });
  }

  #send(members: Parameters<typeof messageText>[0]): void {
    if (!this.#end) this.#options.send(messageText(members));
  }

  /** When two requests share an id, the later one. */
  #answeringOf(id: unknown): Answering | undefined {
    return [...this.#answering].findLast((each) => each.id === id);
  }

  #notice(method: string, params: unknown, bytes: number): void {
    const { cancel, onNotification } = this.#options;
    if (method !== cancel?.method) {
      onNotification?.(method, params, bytes);
      return;
    }
    const { requestId } = (params ?? {}) as { readonly requestId?: unknown };
    this.#answeringOf(requestId)?.stop.abort(new Error('Request cancelled'));
  }

  #settle({ id, result, error }: Extract<Message, { kind: 'response' }>): void {
    const settle = id === null ? undefined : this.#pending.get(id);
    if (id === null || !settle) return;
    this.#pending.delete(id);
    settle(error === undefined ? { result } : { error: (this.#options.errorOf ?? errorOf)(error) });
  }

  #answer({ id, method, params }: Extract<Message, { kind: 'request' }>): void {
    const { onRequest = refuseMethod } = this.#options;
    const answering: Answering = { id, stop: new AbortController() };
    try {
      const reply = onRequest({ id, method, params, signal: answering.stop.signal });
      if (!(reply instanceof Promise)) {
        this.#reply(answering, reply);
        return;
      }
      this.#answering.add(answering);
      void reply
        .then((settled) => this.#reply(answering, settled))
        .catch((error: unknown) => this.#fail(answering, error))
        .finally(() => this.#answering.delete(answering));
    } catch (error) {
      this.#fail(answering, error);
    }
  }

  #reply(answering: Answering, reply: Reply | undefined): void {
    if (this.#isWithdrawn(answering) || !reply) return;
    const send = () => {
      this.#send({ id: answering.id, result: reply.result });
      reply.after?.();
    };
    if (reply.before) void reply.before.then(send).catch((error: unknown) => this.#fail(answering, error));
    else send();
  }

  #fail(answering: Answering, error: unknown): void {
    if (this.#isWithdrawn(answering)) return;
    const { failureOf = () => ({ code: rpcCodes.internalError, message: 'Internal error' }) } = this.#options;
    this.refuse(answering.id, error instanceof JsonRpcError ? error : failureOf(error));
  }

  /** Answers a withdrawn request. Without a way to withdraw, a handler ends as if it was not aborted: its effects are reported. */
  #isWithdrawn({ id, stop }: Answering): boolean {
    const { cancel } = this.#options;
    if (!cancel || !stop.signal.aborted) return false;
    if (cancel.answer) this.refuse(id, cancel.answer);
    return true;
  }
}

function refuseMethod(): never {
  throw new JsonRpcError({ code: rpcCodes.methodNotFound, message: 'Method not found' });
}

function errorOf(error: unknown): JsonRpcError {
  const { code, message, data } = Object(error) as Partial<Record<keyof ErrorBody, unknown>>;
  return new JsonRpcError({
    code: typeof code === 'number' ? code : rpcCodes.internalError,
    message: typeof message === 'string' ? message : 'The error has no message.',
    data,
  });
}
