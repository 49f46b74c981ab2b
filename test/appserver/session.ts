/** Client of `vscode-jsonrpc`, as in editors, over a WebSocket. It checks every received message against its schema. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { Test } from 'tap';
import * as v from 'valibot';
import {
  AbstractMessageReader,
  AbstractMessageWriter,
  createMessageConnection,
  type DataCallback,
  type Message,
  type MessageConnection,
  ResponseError,
} from 'vscode-jsonrpc/node';
import { WebSocket } from 'ws';
import {
  type ApprovalRequest,
  type DynamicToolCall,
  type RpcMethod,
  type RpcNotificationMethod,
  type RpcNotificationParams,
  type RpcParams,
  type RpcResult,
  rpcErrors,
  rpcMethods,
  rpcNotifications,
  type ServerRequestMethod,
  serverRequests,
} from '../../src/protocol/index.ts';
import { deadlineMs, startServer } from './harness.ts';

interface Teardown {
  teardown(work: () => unknown): void;
}

class SocketReader extends AbstractMessageReader {
  readonly #socket: WebSocket;

  constructor(socket: WebSocket) {
    super();
    this.#socket = socket;
  }

  listen(callback: DataCallback) {
    const receive = (data: unknown) => callback(JSON.parse(String(data)));
    this.#socket.on('message', receive).on('close', () => this.fireClose());
    return { dispose: () => this.#socket.off('message', receive) };
  }
}

class SocketWriter extends AbstractMessageWriter {
  readonly #socket: WebSocket;

  constructor(socket: WebSocket) {
    super();
    this.#socket = socket;
  }

  async write(message: Message): Promise<void> {
    this.#socket.send(JSON.stringify(message));
  }

  end(): void {}
}

/** Methods, notifications, requests and errors that tests have used. */
export class Ledger {
  readonly methods = new Set<string>();
  readonly notifications = new Set<string>();
  readonly requests = new Set<string>();
  readonly errors = new Set<string>();
}

type Parameters = Readonly<Record<string, unknown>>;

/** A notification or a request of the server. */
export interface Heard {
  readonly method: string;
  readonly params: Parameters;
}

export interface SessionOptions {
  readonly capabilities?: RpcParams<'initialize'>['capabilities'];
  /** Absent: the client answers that it does not know the method. */
  readonly onApproval?: (request: ApprovalRequest) => unknown;
  /** Returns a `DynamicToolResult`, or an invalid one. */
  readonly onTool?: (call: DynamicToolCall) => unknown;
  readonly ledger?: Ledger;
}

/** A message that violates its schema or has unknown fields. */
class SchemaError extends Error {}

function check(what: string, schema: v.GenericSchema, value: unknown): void {
  const read = v.safeParse(schema, value);
  if (!read.success)
    throw new SchemaError(`${what}: ${JSON.stringify(read.issues[0].message)} in ${JSON.stringify(value)}`);
  if (!isDeepStrictEqual(read.output, value)) {
    throw new SchemaError(`${what} has what its schema does not name: ${JSON.stringify(value)}`);
  }
}

const errorNames = new Map<number, string>(Object.entries(rpcErrors).map(([name, { code }]) => [code, name]));

/** An error as the server answered it. */
export interface Refusal {
  readonly name: string;
  readonly code: number;
  readonly message: string;
  readonly data: unknown;
}

/** One initialized connection. */
export class Session {
  readonly connection: MessageConnection;
  readonly heard: Heard[] = [];
  readonly approvals: ApprovalRequest[] = [];
  readonly toolCalls: DynamicToolCall[] = [];
  /** Messages that violate their schema. */
  readonly faults: string[] = [];
  readonly ledger: Ledger;
  readonly #socket: WebSocket;
  readonly #waiting = new Set<() => void>();

  private constructor(socket: WebSocket, options: SessionOptions) {
    this.#socket = socket;
    this.ledger = options.ledger ?? new Ledger();
    this.connection = createMessageConnection(new SocketReader(socket), new SocketWriter(socket));
    // Open requests are rejected when a test drops the connection; no test awaits them.
    this.connection.onError(() => undefined);
    this.connection.onNotification((method, params) => this.#hear(method, params as unknown as Parameters));
    const { onApproval, onTool } = options;
    if (onApproval) {
      this.connection.onRequest('item/approval/request', (request: ApprovalRequest): unknown => {
        this.#ask('item/approval/request', request);
        this.approvals.push(request);
        this.#wake();
        return onApproval(request);
      });
    }
    if (onTool) {
      this.connection.onRequest('item/tool/call', (call: DynamicToolCall): unknown => {
        this.#ask('item/tool/call', call);
        this.toolCalls.push(call);
        this.#wake();
        return onTool(call);
      });
    }
    this.connection.listen();
  }

  static async open(t: Teardown, url: string, options: SessionOptions = {}): Promise<Session> {
    const socket = new WebSocket(url);
    await once(socket, 'open');
    const session = new Session(socket, options);
    t.teardown(() => session.drop());
    const { capabilities } = options;
    await session.call('initialize', {
      clientInfo: { name: 'vscode-jsonrpc', version: '10' },
      ...(capabilities && { capabilities }),
    });
    await session.connection.sendNotification('initialized', {});
    return session;
  }

  /** The result of a request that must succeed, held against its schema. */
  async call<M extends RpcMethod>(method: M, params: RpcParams<M>): Promise<RpcResult<M>> {
    const result: unknown = await this.connection.sendRequest(method, params);
    this.ledger.methods.add(method);
    check(`the result of ${method}`, rpcMethods[method].result, result);
    return result as RpcResult<M>;
  }

  /** The error of a request that must fail. */
  async refused(method: string, params: unknown): Promise<Refusal> {
    try {
      await this.connection.sendRequest(method, params);
    } catch (error) {
      if (!(error instanceof ResponseError)) throw error;
      const name = errorNames.get(error.code) ?? 'unknown';
      this.ledger.errors.add(name);
      return { name, code: error.code, message: error.message, data: error.data };
    }
    throw new Error(`${method} was not refused`);
  }

  /** The `nth` notification of this method, from 1, among those that fit. */
  async until<N extends RpcNotificationMethod>(
    method: N,
    fits: (params: RpcNotificationParams<N>) => boolean = () => true,
    nth = 1,
  ): Promise<RpcNotificationParams<N>> {
    const find = () =>
      this.heard.filter((event) => event.method === method && fits(event.params as RpcNotificationParams<N>))[nth - 1];
    const { params } = await this.#when(find, method);
    return params as RpcNotificationParams<N>;
  }

  approval(nth = 1): Promise<ApprovalRequest> {
    return this.#when(() => this.approvals[nth - 1], 'an approval request');
  }

  toolCall(nth = 1): Promise<DynamicToolCall> {
    return this.#when(() => this.toolCalls[nth - 1], 'a call of a tool');
  }

  /** Notifications about turns and items, in order, as text: for comparison of two clients. */
  story(): string[] {
    return this.heard
      .filter(({ method }) => /^(turn|item)\//.test(method))
      .map(({ method, params }) => `${method} ${JSON.stringify(params)}`);
  }

  /** Starts a thread and a turn in it. */
  async begin(prompt: string, params: RpcParams<'thread/start'> = {}): Promise<{ threadId: string; turnId: string }> {
    const { thread } = await this.call('thread/start', params);
    const turnId = await this.say(thread.id, prompt);
    return { threadId: thread.id, turnId };
  }

  async say(threadId: string, prompt: string): Promise<string> {
    const { turn } = await this.call('turn/start', { threadId, input: [{ type: 'text', text: prompt }] });
    return turn.id;
  }

  /** The connection breaks, without a word. */
  async drop(): Promise<void> {
    this.connection.dispose();
    if (this.#socket.readyState === WebSocket.CLOSED) return;
    this.#socket.terminate();
    await once(this.#socket, 'close');
  }

  #hear(method: string, params: Parameters): void {
    this.ledger.notifications.add(method);
    this.#fits(() => check(method, rpcNotifications[method as RpcNotificationMethod], params));
    this.heard.push({ method, params });
    this.#wake();
  }

  #ask(method: ServerRequestMethod, params: unknown): void {
    this.ledger.requests.add(method);
    this.#fits(() => check(method, serverRequests[method].params, params));
  }

  /** Records an exception of a check: thrown in a handler, it would become an answer instead of a failure. */
  #fits(test: () => void): void {
    try {
      test();
    } catch (error) {
      this.faults.push(String(error));
    }
  }

  #wake(): void {
    for (const look of [...this.#waiting]) look();
  }

  #when<T>(find: () => T | undefined, what: string): Promise<T> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => settle(() => reject(new Error(`did not come: ${what}`))), deadlineMs);
      const look = () => {
        const found = find();
        if (found !== undefined) settle(() => resolve(found));
      };
      const settle = (act: () => void) => {
        clearTimeout(timer);
        this.#waiting.delete(look);
        act();
      };
      this.#waiting.add(look);
      look();
    });
  }
}

/** A server with the demo model, and clients of it. */
export interface Stage {
  /** The workspace. */
  readonly path: string;
  readonly open: (options?: SessionOptions) => Promise<Session>;
  /** The text of a file of the workspace. */
  readonly read: (name: string) => string;
}

/** Runs a test with its own server. Fails for a message that violates its schema and for a logged bug. */
export function scenario(
  t: Test,
  name: string,
  config: unknown,
  body: (t: Test, stage: Stage) => Promise<unknown>,
): void {
  t.test(name, async (t) => {
    const { server, path, log } = await startServer(t, undefined, { config });
    const sessions: Session[] = [];
    const open = async (options: SessionOptions = {}) => {
      const session = await Session.open(t, server.webSocketUrl, options);
      sessions.push(session);
      return session;
    };
    await body(t, { path, open, read: (file) => readFileSync(join(path, file), 'utf8') });
    t.same(
      sessions.flatMap(({ faults }) => faults),
      [],
      'everything fits its schema',
    );
    t.same(
      log.filter((line) => line.includes('"level":"error"')),
      [],
      'no bug is logged',
    );
  });
}
