import * as v from 'valibot';
import { AgentError, type Feed, type Runtime, StorageError, type ThreadEvent } from '../agent/index.ts';
import { isMissingPart, replacedProgramAdvice } from '../lib/index.ts';
import {
  type ClientCapabilities,
  defaults,
  type RpcId,
  type RpcMethod,
  type RpcRequest,
  rpcMethods,
} from '../protocol/index.ts';
import { errorFrame, notificationFrame, readFrame, resultFrame } from './frames.ts';
import { type Delta, isDelta, MergedDeltas } from './merged-deltas.ts';
import type { Asker, Handled, Methods } from './methods.ts';
import { Questions } from './questions.ts';

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
  readonly respond: Runtime['respond'];
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
    frame = notificationFrame(event.method, event.params);
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
  readonly #questions: Questions;
  readonly #asker: Asker;
  readonly #deltas: MergedDeltas | undefined;
  #stage: 'new' | 'introduced' | 'ready' | 'closed' = 'new';
  #answersApprovals = true;
  /** Name in `initialize`. */
  #client: string | undefined;
  #unwanted: ReadonlySet<string> = new Set();
  #wantsDeltas = true;
  #inFlight = 0;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#leave = options.feed.join(this.#hear);
    const { mergeDeltasMs } = options;
    if (mergeDeltasMs !== undefined) this.#deltas = new MergedDeltas((event) => this.#sendDelta(event), mergeDeltasMs);
    this.#questions = new Questions(
      (frame) => this.#send(frame),
      (requestId, decision, by) => options.respond(requestId, decision, by, this.#client),
    );
    this.#asker = {
      hear: this.#hear,
      callTool: (call, signal) => this.#questions.callTool(call, signal),
      client: () => this.#client,
    };
  }

  /** Handles one frame and sends all responses. Never throws. */
  receive(text: string): void {
    const frame = readFrame(text);
    if (frame.kind === 'refused') this.#send(errorFrame(frame.id, frame.error, frame.reason));
    else if (frame.kind === 'request') void this.#answer(frame.message);
    else if (frame.kind === 'notification' && frame.message.method === 'initialized' && this.#stage === 'introduced') {
      this.#stage = 'ready';
    } else if (frame.kind === 'response') this.#questions.answered(frame.message);
    // Other notifications are unknown and may be ignored.
  }

  /** The client has gone. Work that it started continues. */
  close(): void {
    this.#stage = 'closed';
    this.#leave();
    this.#deltas?.close();
    this.#questions.close();
  }

  #answer({ id, method, params }: RpcRequest): void | Promise<void> {
    if (this.#stage === 'new' && method !== 'initialize') return this.#send(errorFrame(id, 'notInitialized'));
    if (this.#stage !== 'new' && method === 'initialize') return this.#send(errorFrame(id, 'alreadyInitialized'));
    if (!isMethod(method))
      return this.#send(errorFrame(id, 'methodNotFound', undefined, { method: method.slice(0, 100) }));
    if (this.#options.allowed?.has(method) === false) {
      return this.#send(errorFrame(id, 'methodNotAllowed', undefined, { method }));
    }
    if (this.#inFlight >= defaults.jsonRpc.inFlightPerConnection) return this.#send(errorFrame(id, 'overloaded'));
    if (Array.isArray(params)) return this.#refuseParams(id, '', 'an object');
    const checked = v.safeParse(rpcMethods[method].params, params ?? {}, { abortEarly: true });
    if (!checked.success) {
      const [issue] = checked.issues;
      // The message of our own check names the condition; the library's own messages quote the value.
      const wanted = issue.expected ?? (issue.type === 'check' ? issue.message : 'another value');
      const expected = issue.received === 'undefined' ? 'a value' : wanted;
      return this.#refuseParams(id, v.getDotPath(issue) ?? '', expected);
    }
    if (method === 'initialize') this.#introduce(checked.output as v.InferOutput<typeof rpcMethods.initialize.params>);
    else this.#options.onWork?.();
    return this.#perform(id, method, checked.output);
  }

  /** Answers at once where that is possible: order is preserved, and nothing waits for a promise. */
  #perform(id: RpcId, method: RpcMethod, params: unknown): void | Promise<void> {
    try {
      // The table pairs each method with its parameters, which were validated just now.
      const handle = this.#options.methods[method] as (
        params: unknown,
        asker: Asker,
      ) => Handled<RpcMethod> | Promise<Handled<RpcMethod>>;
      const handled = handle(params, this.#asker);
      if (!(handled instanceof Promise)) return this.#finish(id, handled);
      this.#inFlight += 1;
      return handled
        .then(
          (settled) => this.#finish(id, settled),
          (error: unknown) => this.#fail(id, error),
        )
        .finally(() => {
          this.#inFlight -= 1;
        });
    } catch (error) {
      this.#fail(id, error);
    }
  }

  #finish(id: RpcId, { result, after }: Handled<RpcMethod>): void {
    this.#send(resultFrame(id, result));
    after?.();
  }

  #fail(id: RpcId, error: unknown): void {
    this.#send(this.#errorFrame(id, error));
  }

  #errorFrame(id: RpcId, error: unknown): string {
    const isStorage =
      error instanceof StorageError || (error instanceof AgentError && error.reason === 'storageFailed');
    if (isStorage) this.#options.onStorageFailed?.(detailOf(error));
    if (error instanceof AgentError) return errorFrame(id, error.reason, error.detail, error.data);
    if (error instanceof StorageError) return errorFrame(id, 'storageFailed', error.message, { reason: error.code });
    const advice = isMissingPart(error) ? replacedProgramAdvice : undefined;
    return errorFrame(id, 'internalError', advice, { errorId: this.#options.onBug(error) });
  }

  #refuseParams(id: RpcId, path: string, expected: string): void {
    const where = path === '' ? 'params' : path;
    this.#send(errorFrame(id, 'invalidParams', `${where}: expected ${expected}`, { path, expected }));
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

function isMethod(method: string): method is RpcMethod {
  return Object.hasOwn(rpcMethods, method);
}

const detailOf = (error: StorageError | AgentError): string =>
  error instanceof AgentError ? (error.detail ?? error.message) : error.message;
