import {
  type ConnectedMcpSessionPort,
  createSessionPortFromClient,
  DispatchError,
  resultFromTaskOutcome,
  type SerializedTaskReference,
  type TaskEnabledSession,
  TaskFailedError,
  type ToolExecution,
  taskViewFromExecutionEvent,
  toolDeclarationFromMcpTool,
  withTasks,
} from '@modelcontextprotocol/ext-tasks/client';
import { messageOf, plainText } from '../lib/index.ts';
import { defaults, type QuestionAnswer, version } from '../protocol/index.ts';
import { longestMs } from './elicitations.ts';
import { McpFailure } from './failure.ts';
import type { CallToolResult, Client, Tool, Transport } from './library.ts';
import { RawRequests } from './raw-requests.ts';

export interface TaskCallOptions {
  readonly signal: AbortSignal;
  /** Fields for `_meta` of the request. */
  readonly meta?: Readonly<Record<string, string>> | undefined;
  /** Called with the handle of the task, through which a later connection can wait for the task. */
  readonly onTask?: ((handle: string) => void) | undefined;
  /** Whether the task continues after an abort. */
  readonly isLeft?: (() => boolean) | undefined;
  readonly onProgress: (progress: {
    readonly progress: number;
    readonly total?: number | undefined;
    readonly message?: string | undefined;
  }) => void;
}

export interface TaskCallsOptions {
  readonly client: Client;
  readonly transport: Transport;
  readonly serverName: string;
  /** Capabilities of this client, sent to the server. */
  readonly capabilities: { readonly elicitation: { readonly form: object; readonly url: object } };
  /** Answers a request for input of a task. */
  readonly answer: (params: unknown, withdrawn: AbortSignal) => Promise<QuestionAnswer>;
}

/** The server no longer knows the task. */
export class LostTaskError extends Error {
  override readonly name = 'LostTaskError';
}

/** Calls tools that may run as tasks of their server. Polls a task at the suggested interval, and cancels it with the call. */
export class TaskCalls {
  readonly #port: ConnectedMcpSessionPort;
  readonly #session: TaskEnabledSession;
  readonly #raw: RawRequests | undefined;

  constructor({ client, transport, serverName, capabilities, answer }: TaskCallsOptions) {
    this.#raw = client.getProtocolEra() === 'modern' ? new RawRequests(transport) : undefined;
    this.#port = this.#raw
      ? createSessionPortFromClient(client, serverName, {
          rawDispatch: this.#raw.dispatch,
          v2RequestFraming: {
            protocolVersion: client.getNegotiatedProtocolVersion() ?? '',
            clientInfo: { name: 'oratorio', version },
            clientCapabilities: JSON.parse(JSON.stringify(capabilities)),
          },
        })
      : createSessionPortFromClient(client, serverName);
    this.#session = withTasks(this.#port, {
      // Each call passes the declaration of its tool.
      tools: { currentTool: () => undefined },
      async onInputRequest(request, { signal }) {
        if (request.kind !== 'elicitation')
          throw new McpFailure('protocol', 'the task requests input of an unsupported kind.');
        return (await answer(request.params, signal ?? new AbortController().signal)) as never;
      },
    });
  }

  /** @throws McpFailure, errors of the library, the reason of the signal */
  async call(tool: Tool, args: Readonly<Record<string, unknown>>, options: TaskCallOptions): Promise<CallToolResult> {
    const { signal, meta, onProgress } = options;
    const progress = this.#raw?.hearProgress((params) => onProgress(params as never));
    const metadata = { ...meta, ...(progress && { progressToken: progress.token }) };
    try {
      const execution = await this.#session.callTool<CallToolResult>(tool.name, JSON.parse(JSON.stringify(args)), {
        declaration: toolDeclarationFromMcpTool(tool),
        task: { preference: this.#raw ? 'allow' : 'require' },
        requestTimeoutMs: defaults.mcp.taskRequestMs,
        signal,
        metadata,
      });
      return await this.#settle(execution, options);
    } finally {
      progress?.end();
    }
  }

  /** Waits for a task of an earlier connection. @throws LostTaskError, and the errors of `call` */
  async resume(tool: Tool, handle: string, options: TaskCallOptions): Promise<CallToolResult> {
    const reference = JSON.parse(handle) as SerializedTaskReference;
    let execution: ToolExecution<CallToolResult>;
    try {
      execution = await this.#session.resumeTask<CallToolResult>(reference, {
        declaration: toolDeclarationFromMcpTool(tool),
        requestTimeoutMs: defaults.mcp.taskRequestMs,
        signal: options.signal,
      });
    } catch (error) {
      options.signal.throwIfAborted();
      // Any other error is an answer of the server.
      if (error instanceof DispatchError) throw error;
      throw new LostTaskError(messageOf(error), { cause: error });
    }
    return this.#settle(execution, options);
  }

  async #settle(
    execution: ToolExecution<CallToolResult>,
    { signal, onProgress, onTask, isLeft }: TaskCallOptions,
  ): Promise<CallToolResult> {
    if (execution.kind === 'task') onTask?.(JSON.stringify(execution.serializeReference()));
    // A server that does not answer to this ends the task by its own limit.
    const cancel = () => void (isLeft?.() === true ? execution.detach() : execution.cancel()).catch(() => {});
    signal.addEventListener('abort', cancel, { once: true });
    // A server of 2025-11-25 sends a task's requests for input to the client that waits for its result.
    const hearQuestions = (taskId: string) =>
      void this.#port
        .dispatch({ method: 'tasks/result', params: { taskId } }, { signal, context: { requestTimeoutMs: longestMs } })
        .catch(() => {});
    let steps = 0;
    let said: string | undefined;
    let isAsking = false;
    try {
      const { outcome } = await execution.settle({
        signal,
        onEvent: (event) => {
          const view = taskViewFromExecutionEvent(event);
          if (view?.statusMessage !== undefined && view.statusMessage !== said) {
            said = view.statusMessage;
            steps += 1;
            onProgress({ progress: steps, message: view.statusMessage });
          }
          if (this.#raw || view?.status !== 'input_required' || isAsking) return;
          isAsking = true;
          hearQuestions(view.taskId);
        },
      });
      return resultFromTaskOutcome(outcome);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof TaskFailedError)) throw error;
      throw new McpFailure('protocol', `its task failed: ${plainText(error.message)}`, { cause: error });
    } finally {
      signal.removeEventListener('abort', cancel);
    }
  }
}
