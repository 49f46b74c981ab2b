/** Connections of the command line to the agent server of a workspace. */
import { setTimeout as sleep } from 'node:timers/promises';
import * as v from 'valibot';
import {
  AppServerClient,
  AppServerConnectionError,
  AppServerSilentError,
  lastingTurn,
  type RecordAnswer,
  type RpcNotification,
  type RunningTurn,
} from '../client/index.ts';
import { messageOf } from '../lib/index.ts';
import { defaults, QuestionRequest } from '../protocol/index.ts';
import type { Approver } from './approvals.ts';
import type { CommandContext } from './command.ts';
import { CliError } from './errors.ts';
import { clientInfo, ensureWorkspace } from './hub.ts';
import type { Patience } from './patience.ts';
import { workspacePath } from './workspace.ts';

/** Agent server of a workspace. Reconnects after each restart of its process. */
export class LastingServer {
  readonly workspacePath: string;
  readonly #context: CommandContext;
  readonly #onRequest: Approver;
  readonly #patience: Patience;
  #present: AppServerClient;
  #reconnecting: Promise<AppServerClient> | undefined;
  /** Whether a user has stopped the agent server. */
  #isStopped = false;

  private constructor(
    { record, server }: ReachedServer,
    context: CommandContext,
    onRequest: Approver,
    patience: Patience,
  ) {
    this.workspacePath = record.canonicalWorkspacePath;
    this.#context = context;
    this.#onRequest = onRequest;
    this.#patience = patience;
    this.#present = this.#watched(server);
  }

  /** Starts Hub and agent server as needed. @throws the first failure */
  static async reach(context: CommandContext, onRequest: Approver, patience: Patience): Promise<LastingServer> {
    return new LastingServer(await reachServer(context, onRequest, patience), context, onRequest, patience);
  }

  get present(): AppServerClient {
    return this.#present;
  }

  close(): void {
    this.#present.close();
  }

  /** Follows a turn over lost connections: the next start of the agent server resumes it. */
  lasting(turn: RunningTurn): RunningTurn {
    return lastingTurn(turn, (reason) => this.#reconnect(reason));
  }

  /** Does idempotent work, and repeats it after a lost connection. */
  repeated<T>(work: (server: AppServerClient) => Promise<T>): Promise<T> {
    return this.once(work, async () => undefined);
  }

  /**
   * Does work over the current connection. If the connection is lost, the outcome is unknown: `find` looks for the result over the next one.
   *
   * @param find returns the result; undefined: the work was not done, and is repeated
   */
  async once<T>(
    work: (server: AppServerClient) => Promise<T>,
    find: (server: AppServerClient) => Promise<T | undefined>,
  ): Promise<T> {
    for (;;) {
      const server = this.#present;
      try {
        return await work(server);
      } catch (error) {
        if (!(error instanceof AppServerConnectionError)) throw error;
        // The error is an unreadable answer; a repeated request would get it again.
        if (server === this.#present && !(await hasClosed(server))) throw error;
        await this.#reconnect(error);
      }
      const found = await this.repeated(find);
      if (found !== undefined) return found;
    }
  }

  /** Connects again after the end of the agent server; all callers share the connection. @throws `reason` when the user does not wait */
  async #reconnect(reason: AppServerConnectionError): Promise<AppServerClient> {
    if (reason instanceof AppServerSilentError || this.#context.signal.aborted) throw reason;
    if (this.#patience.hasLeft || this.#isStopped) throw reason;
    if (!this.#reconnecting && !(await hasClosed(this.#present))) return this.#present;
    this.#reconnecting ??= reachServer(this.#context, this.#onRequest, this.#patience)
      .then(({ server }) => {
        this.#present = this.#watched(server);
        return server;
      })
      .finally(() => {
        this.#reconnecting = undefined;
      });
    return this.#reconnecting;
  }

  #watched(server: AppServerClient): AppServerClient {
    server.onNotification((notification) => {
      this.#isStopped ||= isStop(notification);
    });
    return server;
  }
}

/** Whether this process has seen the connection close by the end of this turn of the event loop. */
const hasClosed = (server: AppServerClient): Promise<boolean> =>
  Promise.race([
    server.closed.then(() => true),
    new Promise<boolean>((resolve) => {
      setImmediate(() => resolve(false));
    }),
  ]);

export interface ReachedServer {
  readonly record: RecordAnswer;
  readonly server: AppServerClient;
}

/**
 * Ensures the agent server and connects to it. The Hub may still offer a server that has just ended: when
 * a server cannot be reached, it is ensured again. No request was sent to it, so none is repeated.
 */
export async function reachServer(
  context: CommandContext,
  onRequest: Approver,
  { options: silence }: Patience,
): Promise<ReachedServer> {
  const { options, signal } = context;
  const path = workspacePath(context, options['workspace']);
  const info = { ...clientInfo, title: 'Oratorio command line' };
  const deadline = performance.now() + defaults.client.reviveMs;
  for (;;) {
    const record = await ensureWorkspace(context, path);
    try {
      const url = addressOf(record);
      const server = await AppServerClient.connect(url, { clientInfo: info, onRequest, signal, silence });
      server.onNotification((notification) => {
        passOnResolved(notification, onRequest);
        void passOnQuestion(server, notification, context, onRequest);
      });
      void server.closed.then(() => onRequest.withdraw?.());
      return { record, server };
    } catch (error) {
      if (!(error instanceof AppServerConnectionError) || performance.now() > deadline) throw error;
      await sleep(defaults.client.revivePollMs, undefined, { signal });
    }
  }
}

const Suspended = v.looseObject({ kind: v.literal('turnSuspended'), reason: v.literal('stop') });

/** Whether a user has stopped the agent server, so that its turns wait for the next start. */
export const isStop = ({ method, params }: Pick<RpcNotification, 'method' | 'params'>): boolean =>
  method === 'system/event' && v.is(Suspended, params);

const Resolved = v.looseObject({
  ...{ requestId: v.string(), decision: v.string() },
  ...{ decidedBy: v.optional(v.string()), client: v.optional(v.string()) },
});

/** Withdraws a question that is decided. */
function passOnResolved({ method, params }: RpcNotification, { resolved }: Approver): void {
  if ((method !== 'item/approval/resolved' && method !== 'question/resolved') || !resolved) return;
  resolved(v.parse(Resolved, params));
}

/** Asks a question of the agent, and sends the answer. */
async function passOnQuestion(
  server: AppServerClient,
  { method, params }: RpcNotification,
  { output }: Pick<CommandContext, 'output'>,
  { asked }: Approver,
): Promise<void> {
  const request = method === 'question/asked' && asked ? v.safeParse(QuestionRequest, params) : undefined;
  if (!request?.success) return;
  const { requestId } = request.output;
  try {
    const answer = await asked?.(request.output);
    if (answer) await server.request('question/answer', { requestId, ...answer });
  } catch (error) {
    // The turn has ended, or the question waits for the next connection and for other clients.
    output.note(`The question was not answered here: ${messageOf(error)}`);
  }
}

/** @throws CliError `startFailed` when the server has no WebSocket */
function addressOf({ endpoints, canonicalWorkspacePath }: RecordAnswer): string {
  const url = endpoints['appServerWebSocket'];
  if (url !== undefined) return url;
  const message = `The agent server of ${canonicalWorkspacePath} offers no WebSocket.`;
  throw new CliError('startFailed', message, 'See: oratorio inspect .');
}
