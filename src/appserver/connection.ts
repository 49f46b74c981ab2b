import * as v from 'valibot';
import { AgentError, type Feed, type Runtime, StorageError, type ThreadEvent } from '../agent/index.ts';
import { isMissingPart, replacedProgramAdvice } from '../lib/index.ts';
import {
  type ClientCapabilities,
  defaults,
  type RpcErrorName,
  type RpcMethod,
  rpcErrors,
  rpcMethods,
} from '../protocol/index.ts';
import { type ErrorBody, type IncomingRequest, JsonRpcError, messageText, Peer } from '../rpc/index.ts';
import { type Delta, isDelta, MergedDeltas } from './merged-deltas.ts';
import type { Asker, Handled, Methods } from './methods.ts';
import { ClientGone, Questions } from './questions.ts';

/** Receiver of a connection's frames. */
export interface Wire {
  /** Bytes that the reader has not taken yet; absent: unknown. */
  readonly bufferedBytes?: number;
  send(text: string): void;
}

export interface ConnectionOptions {
  readonly wire: Wire;
  readonly methods: Methods;
  readonly feed: Feed;
  /** Takes the client's word on approvals. */
  readonly respond: Runtime['turns']['respond'];
  /** Methods that this client may call. Absent: all. */
  readonly allowed?: ReadonlySet<RpcMethod>;
  /** Time in milliseconds within which deltas of one item are sent as one. Absent: each is sent separately. */
  readonly mergeDeltasMs?: number;
  /** Called with every request of an introduced client: the server is in use. */
  readonly onWork?: () => void;
  /** Called with the reason when a request is refused because the state cannot be written. */
  readonly onStorageFailed?: (reason: string) => void;
  /** Logs a bug and returns its id. */
  readonly onBug: (error: unknown) => string;
}

/** Most characters of a client's name, which other clients are shown. */
const longestName = 100;

/** One serialisation per event, however many connections hear it. */
const frames = new WeakMap<ThreadEvent, string>();

type ThreadNotification = Exclude<ThreadEvent, { readonly method: 'item/approval/request' }>;

function frameOf(event: ThreadNotification): string {
  let frame = frames.get(event);
  if (frame === undefined) {
    frame = messageText({ method: event.method, params: event.params });
    frames.set(event, frame);
  }
  return frame;
}

/**
 * One client: the rules of the protocol that hold per connection. `new` → initialize → `introduced` →
 * initialized → `ready`, from when on it hears notifications. Nothing that a client sends ends the connection.
 */
export class Connection {
  readonly #options: ConnectionOptions;
  readonly #leave: () => void;
  readonly #hear = (event: ThreadEvent): void => this.#deliver(event);
  readonly #peer: Peer;
  readonly #questions: Questions;
  readonly #asker: Asker;
  readonly #deltas: MergedDeltas | undefined;
  readonly #gone = new AbortController();
  #stage: 'new' | 'introduced' | 'ready' | 'closed' = 'new';
  #answersApprovals = true;
  /** Name in `initialize`. */
  #client: string | undefined;
  #unwanted: ReadonlySet<string> = new Set();
  #wantsDeltas = true;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#leave = options.feed.join(this.#hear);
    const { mergeDeltasMs } = options;
    if (mergeDeltasMs !== undefined) this.#deltas = new MergedDeltas((event) => this.#sendDelta(event), mergeDeltasMs);
    this.#peer = new Peer({
      send: (text) => this.#send(text),
      onRequest: (request) => this.#answer(request),
      onNotification: (method) => this.#notice(method),
      onInvalid: ({ id, error, reason }) => this.#peer.refuse(id, errorBody(error, reason)),
      failureOf: (error) => this.#failureOf(error),
      idOf: (number) => `server-${number + 1}`,
      isStrict: true,
    });
    this.#questions = new Questions(this.#peer, (requestId, decision, by) =>
      options.respond(requestId, decision, by, this.#client),
    );
    this.#asker = {
      hear: this.#hear,
      callTool: (call, signal) => this.#questions.callTool(call, signal),
      client: () => this.#client,
      gone: this.#gone.signal,
    };
  }

  /** Handles one frame and sends all responses. Never throws. */
  receive(text: string): void {
    this.#peer.receive(text);
  }

  /** The client has gone. Work that it started continues. */
  close(): void {
    this.#stage = 'closed';
    this.#gone.abort();
    this.#leave();
    this.#deltas?.close();
    this.#peer.close(new ClientGone('the client that brought the tool has gone'));
  }

  /** Other notifications are unknown and may be ignored. */
  #notice(method: string): void {
    if (method === 'initialized' && this.#stage === 'introduced') this.#stage = 'ready';
  }

  /** Answers at once where that is possible: order is preserved, and nothing waits for a promise. @throws JsonRpcError */
  #answer({ method, params }: IncomingRequest): Handled<RpcMethod> | Promise<Handled<RpcMethod>> {
    if (this.#stage === 'new' && method !== 'initialize') throw refusal('notInitialized');
    if (this.#stage !== 'new' && method === 'initialize') throw refusal('alreadyInitialized');
    if (!isMethod(method)) throw refusal('methodNotFound', undefined, { method: method.slice(0, 100) });
    if (this.#options.allowed?.has(method) === false) throw refusal('methodNotAllowed', undefined, { method });
    if (this.#peer.answering >= defaults.jsonRpc.inFlightPerConnection) throw refusal('overloaded');
    const checked = checkedParams(method, params);
    if (method === 'initialize') this.#introduce(checked as v.InferOutput<typeof rpcMethods.initialize.params>);
    else this.#options.onWork?.();
    // The table pairs each method with its parameters, which were validated just now.
    const handle = this.#options.methods[method] as (
      params: unknown,
      asker: Asker,
    ) => Handled<RpcMethod> | Promise<Handled<RpcMethod>>;
    return handle(checked, this.#asker);
  }

  #failureOf(error: unknown): ErrorBody {
    const isStorage =
      error instanceof StorageError || (error instanceof AgentError && error.reason === 'storageFailed');
    if (isStorage) this.#options.onStorageFailed?.(detailOf(error));
    if (error instanceof AgentError) return errorBody(error.reason, error.detail, error.data);
    if (error instanceof StorageError) return errorBody('storageFailed', error.message, { reason: error.code });
    const advice = isMissingPart(error) ? replacedProgramAdvice : undefined;
    return errorBody('internalError', advice, { errorId: this.#options.onBug(error) });
  }

  #introduce({ capabilities, clientInfo }: v.InferOutput<typeof rpcMethods.initialize.params>): void {
    const { approvalSupport, streamingSupport, optOutNotificationMethods }: v.InferOutput<typeof ClientCapabilities> =
      capabilities;
    this.#stage = 'introduced';
    this.#client = clientInfo.name.slice(0, longestName);
    this.#answersApprovals = approvalSupport;
    this.#wantsDeltas = streamingSupport;
    this.#unwanted = new Set(optOutNotificationMethods);
  }

  #deliver(event: ThreadEvent): void {
    if (this.#stage !== 'ready' || this.#unwanted.has(event.method)) return;
    if (/delta$/i.test(event.method) && (!this.#wantsDeltas || this.#isBehind)) return;
    if (event.method === 'item/approval/request') {
      if (this.#answersApprovals) this.#questions.askApproval(event.params);
      return;
    }
    if (this.#deltas && isDelta(event)) {
      this.#deltas.add(event);
      return;
    }
    if (event.method === 'item/approval/resolved') this.#questions.forgetApproval(event.params.requestId);
    this.#send(frameOf(event));
  }

  /** A slow reader loses deltas, not its connection: the completed item has the whole text. */
  get #isBehind(): boolean {
    return (this.#options.wire.bufferedBytes ?? 0) > defaults.jsonRpc.bufferedBytes / 2;
  }

  /** Everything but deltas comes after the deltas that came before it. */
  #send(frame: string): void {
    this.#deltas?.flush();
    if (this.#stage !== 'closed') this.#options.wire.send(frame);
  }

  #sendDelta(event: Delta): void {
    if (this.#stage !== 'closed') this.#options.wire.send(frameOf(event));
  }
}

/** @throws JsonRpcError that names the first wrong parameter */
function checkedParams(method: RpcMethod, params: unknown): unknown {
  if (Array.isArray(params)) throw invalidParams('', 'an object');
  const checked = v.safeParse(rpcMethods[method].params, params ?? {}, { abortEarly: true });
  if (checked.success) return checked.output;
  const [issue] = checked.issues;
  // The message of our own check names the condition; the library's own messages quote the value.
  const wanted = issue.expected ?? (issue.type === 'check' ? issue.message : 'another value');
  throw invalidParams(v.getDotPath(issue) ?? '', issue.received === 'undefined' ? 'a value' : wanted);
}

function invalidParams(path: string, expected: string): JsonRpcError {
  return refusal('invalidParams', `${path === '' ? 'params' : path}: expected ${expected}`, { path, expected });
}

const refusal = (...error: Parameters<typeof errorBody>): JsonRpcError => new JsonRpcError(errorBody(...error));

/** `detail` completes the standard message; `data` is for programs. */
function errorBody(name: RpcErrorName, detail?: string, data?: unknown): ErrorBody {
  const { code, message } = rpcErrors[name];
  return { code, message: detail === undefined ? message : `${message}: ${detail}`, data };
}

function isMethod(method: string): method is RpcMethod {
  return Object.hasOwn(rpcMethods, method);
}

const detailOf = (error: StorageError | AgentError): string =>
  error instanceof AgentError ? (error.detail ?? error.message) : error.message;
