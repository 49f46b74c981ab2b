import * as v from 'valibot';
import { defaults, version } from '../protocol/index.ts';
import { type IncomingRequest, JsonRpcError, Peer, type Reply, rpcCodes } from '../rpc/index.ts';
import { AppServerConnectionError, AppServerSilentError } from './errors.ts';
import { type SilenceOptions, SilenceWatch } from './silence.ts';

/** An unrequested message of the server. */
export interface RpcNotification {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

export interface AppServerClientOptions {
  readonly clientInfo?: { readonly name: string; readonly title?: string; readonly version: string };
  /** Answers requests of the server (approvals, tools of the client). Absent, or when it throws: an error is answered. */
  readonly onRequest?: (method: string, params: Readonly<Record<string, unknown>>) => Promise<unknown> | unknown;
  /** Default time-out: for opening, `initialize`, and every request without its own. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal | undefined;
  /** Watches for a server that does not answer at all. Absent: only time-outs of requests end a wait. */
  readonly silence?: SilenceOptions | undefined;
}

export interface RequestOptions {
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal | undefined;
}

const Params = v.optional(v.record(v.string(), v.unknown()), {});
const InitializeResult = v.looseObject({
  serverInfo: v.looseObject({ name: v.string(), version: v.string() }),
  capabilities: v.optional(v.record(v.string(), v.unknown()), {}),
});
export type InitializeResult = v.InferOutput<typeof InitializeResult>;

/**
 * One initialized connection to an agent server: JSON-RPC 2.0 over WebSocket (specification §4.2 rule 2). Made by
 * `AppServerClient.connect`. Runs wherever there is a standard `WebSocket`.
 *
 * @example const server = await AppServerClient.connect(record.endpoints['appServerWebSocket']);
 */
export class AppServerClient {
  readonly server: InitializeResult;
  readonly #wire: Wire;

  private constructor(wire: Wire, server: InitializeResult) {
    this.#wire = wire;
    this.server = server;
  }

  /**
   * Opens `url` (`endpoints.appServerWebSocket` of a record, token included), sends `initialize` and `initialized`.
   *
   * @throws AppServerConnectionError when it cannot be opened or does not answer in time; JsonRpcError when it refuses
   * @example const server = await AppServerClient.connect(record.endpoints['appServerWebSocket']);
   */
  static async connect(url: string, options: AppServerClientOptions = {}): Promise<AppServerClient> {
    const clientInfo = { name: 'oratorio', title: 'Oratorio', version, ...options.clientInfo };
    const wire = await Wire.open(url, options);
    try {
      const capabilities = { approvalSupport: options.onRequest !== undefined, streamingSupport: true };
      const answer = await wire.request('initialize', { clientInfo, capabilities }, { signal: options.signal });
      const server = v.safeParse(InitializeResult, answer);
      if (!server.success) throw new AppServerConnectionError('The answer to initialize has an unexpected form.');
      wire.notify('initialized', {});
      return new AppServerClient(wire, server.output);
    } catch (error) {
      wire.close();
      throw error;
    }
  }

  /** Whether the server has been silent for longer than `silence.noticeMs`. */
  get isSilent(): boolean {
    return this.#wire.isSilent;
  }

  /** Resolves with the cause when the connection has ended; never rejects. */
  get closed(): Promise<Error> {
    return this.#wire.closed;
  }

  /**
   * Calls a method of the agent server and resolves with its result.
   *
   * @throws JsonRpcError the server refuses; AppServerConnectionError the connection breaks or the time is over
   * @example const { data } = (await server.request('thread/list')) as { data: unknown[] };
   */
  request(
    method: string,
    params: Readonly<Record<string, unknown>> = {},
    options: RequestOptions = {},
  ): Promise<unknown> {
    return this.#wire.request(method, params, options);
  }

  /**
   * Sends a notification: the server does not answer it.
   *
   * @example server.notify('initialized');
   */
  notify(method: string, params: Readonly<Record<string, unknown>> = {}): void {
    this.#wire.notify(method, params);
  }

  /**
   * Calls `listener` with every notification from now on. Returns a function that removes the listener.
   *
   * @example const remove = server.onNotification(({ method }) => console.log(method));
   */
  onNotification(listener: (notification: RpcNotification) => void): () => void {
    this.#wire.listeners.add(listener);
    return () => this.#wire.listeners.delete(listener);
  }

  /**
   * Yields the notifications from the moment of the call until `signal` aborts.
   *
   * @throws AppServerConnectionError the connection ends
   * @example for await (const { method, params } of server.notifications()) console.log(method, params);
   */
  notifications({ signal }: RequestOptions = {}): AsyncGenerator<RpcNotification, void, undefined> {
    const queue = new Queue<RpcNotification>();
    const off = this.onNotification((notification) => queue.push(notification));
    void this.closed.then((error) => queue.end(error));
    signal?.addEventListener('abort', () => queue.end(null), { once: true });
    if (signal?.aborted) queue.end(null);
    return queue.read(off);
  }

  /**
   * Ends the connection; requests in flight reject. A running turn continues in the server.
   *
   * @example server.close();
   */
  close(): void {
    this.#wire.close();
  }
}

/** Notifications that arrive between two reads of an iterator. */
export class Queue<T> {
  #items: T[] = [];
  #ended: Error | null | undefined;
  #wake: (() => void) | undefined;

  push(item: T): void {
    if (this.#ended !== undefined) return;
    this.#items.push(item);
    this.#wake?.();
  }

  /** Queued notifications are still read; then iteration ends, or throws `error`. */
  end(error: Error | null): void {
    this.#ended ??= error;
    this.#wake?.();
  }

  async *read(onLeave: () => void): AsyncGenerator<T, void, undefined> {
    try {
      for (;;) {
        yield* this.#items.splice(0);
        if (this.#items.length > 0) continue;
        if (this.#ended) throw this.#ended;
        if (this.#ended === null) return;
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    } finally {
      this.#ended ??= null;
      onLeave();
    }
  }
}

/** The connection below the conversation: it opens, falls silent and ends. */
class Wire {
  readonly listeners = new Set<(notification: RpcNotification) => void>();
  readonly closed: Promise<Error>;
  readonly #socket: WebSocket;
  readonly #options: AppServerClientOptions;
  readonly #peer: Peer;
  readonly #watch: SilenceWatch | undefined;
  readonly #end: (error: Error) => void;

  private constructor(socket: WebSocket, options: AppServerClientOptions) {
    this.#socket = socket;
    this.#options = options;
    const { onRequest } = options;
    this.#peer = new Peer({
      send: (text) => {
        if (socket.readyState === WebSocket.OPEN) socket.send(text);
      },
      onRequest: (request) => answerOf(request, onRequest),
      onNotification: (method, params) => this.#notify(method, params),
      failureOf: (error) => ({ code: rpcCodes.internalError, message: String(error) }),
    });
    const { promise, resolve } = Promise.withResolvers<Error>();
    this.closed = promise;
    this.#end = (error) => {
      this.#watch?.stop();
      this.#peer.close(error);
      resolve(error);
    };
    this.#watch = options.silence && this.#watchSilence(options.silence);
    socket.addEventListener('message', ({ data }) => {
      this.#watch?.heard();
      if (typeof data === 'string') this.#peer.receive(data);
    });
    socket.addEventListener('close', ({ code, reason }) => {
      this.#end(
        new AppServerConnectionError(`The agent server closed the connection (${code}${reason && ` ${reason}`}).`),
      );
    });
    socket.addEventListener('error', () =>
      this.#end(new AppServerConnectionError('The connection to the agent server broke.')),
    );
  }

  get isSilent(): boolean {
    return this.#watch?.isSilent === true;
  }

  /** An interruption by the user does not wait for a server that is silent. */
  #watchSilence(silence: SilenceOptions): SilenceWatch {
    const { signal } = this.#options;
    const { host } = new URL(this.#socket.url);
    const leaveIfSilent = () => {
      if (signal?.aborted && this.isSilent) {
        this.#give(signal.reason instanceof Error ? signal.reason : new Error('aborted'));
      }
    };
    signal?.addEventListener('abort', leaveIfSilent, { once: true });
    return new SilenceWatch(
      {
        ...silence,
        onSilence: (isSilent) => {
          silence.onSilence?.(isSilent);
          leaveIfSilent();
        },
      },
      {
        // Any answer is a sign of life, an error too.
        askForSign: () => void this.#peer.ask('approval/list', {}, () => undefined),
        giveUp: (deadlineMs) => this.#give(new AppServerSilentError(host, deadlineMs)),
      },
    );
  }

  #give(error: Error): void {
    this.#end(error);
    this.#socket.close();
  }

  static open(url: string, options: AppServerClientOptions): Promise<Wire> {
    const { signal, timeoutMs = defaults.client.requestMs } = options;
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      if (!URL.canParse(url)) throw new AppServerConnectionError('The agent server has published no usable address.');
      const socket = new WebSocket(url);
      const wire = new Wire(socket, options);
      // The token is in the query: no message may hold the whole address.
      const { host } = new URL(url);
      const give = (error: Error) => {
        settle();
        wire.close();
        reject(error);
      };
      const timer = setTimeout(
        () => give(new AppServerConnectionError(`${host} did not open within ${timeoutMs} ms.`)),
        timeoutMs,
      );
      const onAbort = () => give(signal?.reason instanceof Error ? signal.reason : new Error('aborted'));
      const settle = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', onAbort);
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      void wire.closed.then((error) =>
        give(
          error instanceof AppServerSilentError
            ? error
            : new AppServerConnectionError(`The agent server at ${host} cannot be reached.`),
        ),
      );
      socket.addEventListener('open', () => {
        settle();
        resolve(wire);
      });
    });
  }

  request(method: string, params: Readonly<Record<string, unknown>>, options: RequestOptions): Promise<unknown> {
    const { signal, timeoutMs: ms = this.#options.timeoutMs ?? defaults.client.requestMs } = options;
    const error = () => new AppServerConnectionError(`${method} was not answered within ${ms} ms.`);
    return this.#peer.request(method, params, { signal, deadline: { ms, error } });
  }

  notify(method: string, params: Readonly<Record<string, unknown>>): void {
    this.#peer.notify(method, params);
  }

  close(): void {
    this.#end(new AppServerConnectionError('The connection was closed.'));
    this.#socket.close();
  }

  #notify(method: string, given: unknown): void {
    const params = v.safeParse(Params, given);
    if (params.success) for (const listener of [...this.listeners]) listener({ method, params: params.output });
  }
}

async function answerOf(
  { method, params: given }: IncomingRequest,
  onRequest: AppServerClientOptions['onRequest'],
): Promise<Reply> {
  const params = v.safeParse(Params, given);
  if (!onRequest)
    throw new JsonRpcError({ code: rpcCodes.methodNotFound, message: `${method} is not supported here.` });
  if (!params.success) throw new JsonRpcError({ code: rpcCodes.invalidParams, message: 'params must be an object' });
  return { result: (await onRequest(method, params.output)) ?? {} };
}
